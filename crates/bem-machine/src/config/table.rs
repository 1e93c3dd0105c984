//! The macro that turns one table of parameters into the struct, its file form and its canonical bytes.
//!
//! One table, so that a parameter cannot exist without a default, a range, a sentence and a place in the
//! encoding. Must not know which parameters exist. Clauses: MEM-3.

/// See [`super::GenesisConfig`] for its only use.
macro_rules! parameters {
    ($(
        $section:literal {
            $(
                $(#[doc = $about:literal])+
                $spec:literal $name:ident : $kind:ty [$bounds:expr] = $default:expr;
            )+
        }
    )+) => {
        /// Every frozen parameter of one run. Invariants: each field is within its range, and the relations of
        /// [`GenesisConfig::check`] hold.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[doc(alias = "CONFIG")]
        pub struct GenesisConfig {
            $($(
                $(#[doc = $about])+
                #[doc = concat!("\n\nSpecification: `", $spec, "`.")]
                #[doc(alias = $spec)]
                pub $name: $kind,
            )+)+
        }

        impl Default for GenesisConfig {
            fn default() -> GenesisConfig {
                GenesisConfig { $($($name: $default,)+)+ }
            }
        }

        impl GenesisConfig {
            /// The names of all parameters, in order.
            pub const NAMES: &'static [&'static str] = &[$($(stringify!($name),)+)+];

            /// Every value against its own range; the first that does not fit is named.
            fn check_ranges(&self) -> Result<(), ConfigError> {
                $($(
                    if !self.$name.fits(&$bounds) {
                        return Err(ConfigError::OutOfRange {
                            field: stringify!($name),
                            value: self.$name.show(),
                            allowed: <$kind as Value>::allowed(&$bounds),
                        });
                    }
                )+)+
                Ok(())
            }

            /// Takes one field from a file.
            fn assign(&mut self, field: &str, value: &toml::de::DeValue<'_>) -> Result<(), ConfigError> {
                match field {
                    $($(
                        stringify!($name) => {
                            self.$name = <$kind as Value>::parse(value).map_err(|found| ConfigError::OutOfRange {
                                field: stringify!($name),
                                value: found,
                                allowed: <$kind as Value>::allowed(&$bounds),
                            })?;
                        }
                    )+)+
                    _ => return Err(ConfigError::UnknownField { field: field.to_string() }),
                }
                Ok(())
            }

            /// The whole configuration as a file, every parameter with its meaning and range.
            pub fn to_toml(&self) -> String {
                let mut text = String::new();
                $(
                    text.push_str(concat!("\n# ", $section, "\n"));
                    $(
                        text.push('\n');
                        $(text.push_str(concat!("#", $about, "\n"));)+
                        let allowed = <$kind as Value>::allowed(&$bounds);
                        text.push_str(&format!("# {}; {allowed}.\n", $spec));
                        text.push_str(&format!("{} = {}\n", stringify!($name), self.$name.show()));
                    )+
                )+
                text.trim_start().to_string()
            }

            fn encode_fields(&self, writer: &mut Writer) {
                $($(Value::encode(&self.$name, writer);)+)+
            }

            fn decode_fields(reader: &mut Reader<'_>) -> Result<GenesisConfig, DecodeError> {
                Ok(GenesisConfig { $($($name: <$kind as Value>::decode(reader)?,)+)+ })
            }

            /// The words of the CONFIG segment: every parameter in order.
            pub fn words(&self) -> Vec<u64> {
                let mut words = Vec::new();
                $($(Value::words(&self.$name, &mut words);)+)+
                words
            }
        }
    };
}
pub(super) use parameters;
