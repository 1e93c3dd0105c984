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
                $spec:literal $name:ident : $kind:ty [$bounds:expr] = $default:expr,
                    tried $other:literal $(given $given:literal)? on $reference:expr;
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
            pub(super) fn check_ranges(&self) -> Result<(), ConfigError> {
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
            pub(super) fn assign(&mut self, field: &str, value: &toml::de::DeValue<'_>) -> Result<(), ConfigError> {
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

            /// Every parameter with its value and what may be said about it, in order.
            pub fn entries(&self) -> Vec<Entry> {
                let default = GenesisConfig::default();
                vec![$($(
                    Entry {
                        section: $section,
                        name: stringify!($name),
                        specification: $spec,
                        meaning: concat!($($about),+).trim().to_string(),
                        allowed: <$kind as Value>::allowed(&$bounds),
                        default: default.$name.show(),
                        value: self.$name.show(),
                    },
                )+)+]
            }

            /// How every parameter is shown to matter, in order.
            pub const TRIALS: &'static [Trial] = &[$($(
                Trial {
                    name: stringify!($name),
                    given: concat!($($given)?),
                    other: $other,
                    reference: $reference,
                },
            )+)+];

            /// Whether the parameter of this name has the same value here and there.
            ///
            /// Panics if there is none: the table of versions names one that does not exist.
            pub(super) fn has_equal(&self, other: &GenesisConfig, name: &str) -> bool {
                match name {
                    $($(stringify!($name) => self.$name == other.$name,)+)+
                    _ => panic!("there is no parameter {name:?}"),
                }
            }

            pub(super) fn encode_fields(&self, version: u32, writer: &mut Writer) {
                $($(if has_parameter(ADDED, version, stringify!($name)) {
                    Value::encode(&self.$name, writer);
                })+)+
            }

            pub(super) fn decode_fields(
                version: u32,
                reader: &mut Reader<'_>,
            ) -> Result<GenesisConfig, DecodeError> {
                let unsaid = GenesisConfig::default();
                Ok(GenesisConfig { $($($name: match has_parameter(ADDED, version, stringify!($name)) {
                    true => <$kind as Value>::decode(reader)?,
                    false => unsaid.$name,
                },)+)+ })
            }

            /// The words of the CONFIG segment: every parameter of its version in order.
            pub fn words(&self) -> Vec<u64> {
                let (version, mut words) = (self.version(), Vec::new());
                $($(if has_parameter(ADDED, version, stringify!($name)) {
                    Value::words(&self.$name, &mut words);
                })+)+
                words
            }
        }
    };
}
pub(super) use parameters;
