//! Rungs whose measured steps lie on a line, written by `cargo xtask ladder choose`. Do not edit. Clauses: GLE-5.

/// The chosen rungs of a family, from the easiest to the hardest; nothing where none were measured.
pub fn chosen(family: &str) -> &'static [&'static str] {
    match family {
        "parity" => &[
            "parity{n=2,relevant=1}",
            "parity{n=6,relevant=3}",
            "parity{n=48,relevant=24}",
            "parity{n=64,noise=5,relevant=32}",
            "parity{n=64,noise=20,relevant=32}",
        ],
        "parity_stream" => &[
            "parity_stream{n=3}",
            "parity_stream{n=7}",
            "parity_stream{n=15}",
            "parity_stream{n=31}",
            "parity_stream{n=63}",
        ],
        "majority" => &[
            "majority{n=3,relevant=1}",
            "majority{n=12,relevant=3}",
            "majority{n=25,relevant=7}",
            "majority{n=34,relevant=11}",
            "majority{n=63,relevant=21}",
        ],
        "popcount" => {
            &["popcount{n=1}", "popcount{n=4}", "popcount{n=10}", "popcount{n=18}", "popcount{n=31}"]
        }
        "dyck" => &[
            "dyck{depth=2,length=8,types=2}",
            "dyck{depth=4,length=16,types=2}",
            "dyck{depth=6,length=24,types=2}",
            "dyck{depth=11,length=44,types=2}",
            "dyck{depth=22,length=88,types=2}",
        ],
        "stack_machine" => &[
            "stack_machine{depth=1,horizon=4,value_bits=2}",
            "stack_machine{depth=5,horizon=20,value_bits=2}",
            "stack_machine{depth=9,horizon=36,value_bits=2}",
            "stack_machine{depth=12,horizon=48,value_bits=2}",
            "stack_machine{depth=16,horizon=64,value_bits=2}",
        ],
        "key_value" => &[
            "key_value{distractors=1,keys=1,values=4,writes=1}",
            "key_value{distractors=8,keys=8,values=4,writes=8}",
            "key_value{distractors=16,keys=16,values=4,writes=16}",
            "key_value{distractors=32,keys=16,values=4,writes=32}",
            "key_value{distractors=64,keys=16,values=4,writes=64}",
        ],
        "associative_recall" => &[
            "associative_recall{pairs=1,tokens=2}",
            "associative_recall{pairs=2,tokens=4}",
            "associative_recall{pairs=3,tokens=6}",
            "associative_recall{pairs=5,tokens=10}",
            "associative_recall{pairs=8,tokens=16}",
        ],
        "bandit" => &[
            "bandit{arms=4,gap=50}",
            "bandit{arms=12,gap=34}",
            "bandit{arms=24,gap=24}",
            "bandit{arms=64,gap=20}",
            "bandit{arms=64,gap=10}",
        ],
        "contextual_bandit" => &[
            "contextual_bandit{arms=4,context_bits=1,noise_bits=0}",
            "contextual_bandit{arms=4,context_bits=2,noise_bits=1}",
            "contextual_bandit{arms=4,context_bits=3,noise_bits=1}",
            "contextual_bandit{arms=4,context_bits=4,noise_bits=2}",
            "contextual_bandit{arms=4,context_bits=5,noise_bits=2}",
        ],
        "nonstationary_bandit" => &[
            "nonstationary_bandit{arms=2,gap=100,segment=500}",
            "nonstationary_bandit{arms=2,gap=100,segment=1000}",
            "nonstationary_bandit{arms=2,gap=100,segment=2000}",
            "nonstationary_bandit{arms=2,gap=60,segment=4000}",
            "nonstationary_bandit{arms=2,gap=60,segment=8000}",
        ],
        "matrix_game" => &[
            "matrix_game{game=prisoners_dilemma,horizon=1,opponent=tit_for_tat}",
            "matrix_game{game=prisoners_dilemma,horizon=3,opponent=tit_for_tat}",
            "matrix_game{game=prisoners_dilemma,horizon=6,opponent=tit_for_tat}",
            "matrix_game{game=prisoners_dilemma,horizon=28,opponent=tit_for_tat}",
            "matrix_game{game=prisoners_dilemma,horizon=64,opponent=tit_for_tat}",
        ],
        "signaling" => &[
            "signaling{noise=10,states=2}",
            "signaling{noise=10,states=4}",
            "signaling{noise=10,states=6}",
            "signaling{noise=10,states=11}",
            "signaling{noise=10,states=24}",
        ],
        "auction" => &[
            "auction{bits=1,opponents=2,price=second}",
            "auction{bits=1,opponents=6,price=second}",
            "auction{bits=2,opponents=1}",
            "auction{bits=2,opponents=2}",
            "auction{bits=3,opponents=1}",
        ],
        "small_sat" => &[
            "small_sat{clauses=1,vars=1}",
            "small_sat{clauses=4,vars=2}",
            "small_sat{clauses=8,vars=4}",
            "small_sat{clauses=14,vars=7}",
            "small_sat{clauses=16,vars=8}",
        ],
        "safety_grid" => &[
            "safety_grid{bad=0,size=2}",
            "safety_grid{bad=1,size=3}",
            "safety_grid{bad=4,size=6}",
            "safety_grid{bad=12,size=10}",
            "safety_grid{bad=18,size=12}",
        ],
        "compare" => &[
            "compare{bits=1,scramble=bits}",
            "compare{bits=2,scramble=bits}",
            "compare{bits=4,scramble=bits}",
            "compare{bits=12,scramble=bits}",
        ],
        "add" => &[
            "add{bits=1,form=word}",
            "add{bits=2,form=word}",
            "add{bits=4,form=word}",
            "add{bits=6,form=word}",
            "add{bits=8,form=word}",
        ],
        "subtract" => &[
            "subtract{bits=1,form=word}",
            "subtract{bits=3,form=word}",
            "subtract{bits=4,form=word}",
            "subtract{bits=6,form=word}",
            "subtract{bits=8,form=word}",
        ],
        "sorting" => &[
            "sorting{key_bits=1,keys=3}",
            "sorting{key_bits=1,keys=3,noise=30}",
            "sorting{key_bits=1,keys=3,noise=50}",
            "sorting{key_bits=1,keys=3,noise=70}",
            "sorting{key_bits=1,keys=3,noise=80}",
        ],
        "distance" => &[
            "distance{cap=1,n=1}",
            "distance{cap=3,n=3}",
            "distance{cap=7,n=7}",
            "distance{cap=7,n=10}",
            "distance{cap=7,n=24}",
        ],
        "next_token" => &[
            "next_token{order=2,vocab=2}",
            "next_token{order=3,vocab=2}",
            "next_token{order=1,vocab=9}",
            "next_token{order=1,vocab=16}",
        ],
        "transducer" => &[
            "transducer{horizon=6,inputs=4,outputs=4,states=1}",
            "transducer{horizon=6,inputs=4,outputs=4,states=2}",
            "transducer{horizon=6,inputs=16,outputs=4,states=2}",
            "transducer{horizon=12,inputs=8,outputs=8,states=4}",
            "transducer{horizon=24,inputs=8,outputs=16,states=8}",
        ],
        "copy" => {
            &["copy{length=1}", "copy{length=5}", "copy{length=8}", "copy{length=15}", "copy{length=24}"]
        }
        "reverse" => &[
            "reverse{length=1}",
            "reverse{length=5}",
            "reverse{length=8}",
            "reverse{length=15}",
            "reverse{length=24}",
        ],
        "permute" => &[
            "permute{length=1}",
            "permute{length=3}",
            "permute{length=8}",
            "permute{length=14}",
            "permute{length=24}",
        ],
        _ => &[],
    }
}
