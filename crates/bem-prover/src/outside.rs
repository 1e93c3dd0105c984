//! Questions that somebody else answers, and what of the answers is believed.
//!
//! Within [`through`] a question of [`crate::solve`] goes to an [`Outside`] first, on this thread. A proof counts only when the
//! checker has accepted it for exactly the formula that was asked, a model only when it satisfies every clause; whatever else
//! comes back, or nothing, and the question is answered here. Must not know who answers. Clauses: SCC-5, TOOL-8; decision D-118.

use crate::solver::{Budget, Outcome};
use bem_checker::{Certificate, Cnf};
use std::cell::RefCell;

/// What somebody else says about a formula; nothing of it is believed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It has no model; the bytes should be a proof.
    Unsatisfiable(Vec<u8>),
    /// It has this model.
    Satisfiable(Vec<bool>),
}

/// Somebody else.
pub trait Outside {
    /// Asks; nothing if there is no answer.
    fn ask(&mut self, cnf: &Cnf, budget: Budget) -> Option<Said>;
}

thread_local! {
    static OUTSIDE: RefCell<Option<Box<dyn Outside>>> = const { RefCell::new(None) };
}

/// Puts whoever was there before back, also when the work panics.
struct Before(Option<Box<dyn Outside>>);

impl Drop for Before {
    fn drop(&mut self) {
        let before = self.0.take();
        OUTSIDE.with(|outside| *outside.borrow_mut() = before);
    }
}

/// Does some work, on this thread, whose questions go to somebody else first.
pub fn through<T>(outside: Box<dyn Outside>, work: impl FnOnce() -> T) -> T {
    let before = Before(OUTSIDE.with(|place| place.borrow_mut().replace(outside)));
    let done = work();
    drop(before);
    done
}

/// The outcome that somebody else has shown, if there is somebody and it was shown.
pub(crate) fn ask(cnf: &Cnf, budget: Budget) -> Option<Outcome> {
    // A question within a question is answered here.
    let mut outside = OUTSIDE.with(|place| place.borrow_mut().take())?;
    let said = outside.ask(cnf, budget);
    OUTSIDE.with(|place| *place.borrow_mut() = Some(outside));
    match said? {
        Said::Unsatisfiable(proof) => {
            let certificate = Certificate { formula: cnf.digest(), assumptions: Vec::new(), proof };
            certificate.check(cnf).is_ok().then_some(Outcome::Unsatisfiable { certificate, core: Vec::new() })
        }
        Said::Satisfiable(model) => {
            let holds = model.len() == cnf.variables() as usize && cnf.first_violated(&model).is_none();
            holds.then_some(Outcome::Satisfiable { model })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve;
    use bem_checker::Literal;
    use std::cell::Cell;
    use std::rc::Rc;

    struct Scripted(Rc<Cell<u32>>, Option<Said>);

    impl Outside for Scripted {
        fn ask(&mut self, _: &Cnf, _: Budget) -> Option<Said> {
            self.0.set(self.0.get() + 1);
            self.1.clone()
        }
    }

    fn formula(clauses: &[&[i64]]) -> Cnf {
        let mut cnf = Cnf::new(2);
        for clause in clauses {
            let clause: Vec<Literal> = clause.iter().filter_map(|one| Literal::from_dimacs(*one)).collect();
            cnf.add(&clause);
        }
        cnf
    }

    fn check(cnf: &Cnf, said: Option<Said>, expected: &Outcome) {
        let asked = Rc::new(Cell::new(0));
        let outside = Box::new(Scripted(Rc::clone(&asked), said));
        let outcome = through(outside, || solve(cnf, &[], Budget::DEFAULT));
        assert_eq!((&outcome, asked.get()), (expected, 1));
        assert_eq!(solve(cnf, &[], Budget::DEFAULT), outcome, "afterwards it is answered here");
        assert_eq!(asked.get(), 1);
    }

    #[test]
    fn only_what_carries_its_evidence_is_believed() {
        let impossible = formula(&[&[1, 2], &[-1, 2], &[1, -2], &[-1, -2]]);
        let honest = solve(&impossible, &[], Budget::DEFAULT);
        let Outcome::Unsatisfiable { certificate, .. } = &honest else { panic!("{honest:?}") };
        check(&impossible, Some(Said::Unsatisfiable(certificate.proof.clone())), &honest);
        check(&impossible, Some(Said::Unsatisfiable(Vec::new())), &honest);
        check(&impossible, Some(Said::Unsatisfiable(vec![7; 40])), &honest);
        check(&impossible, Some(Said::Satisfiable(vec![true, true])), &honest);
        check(&impossible, None, &honest);
        let possible = formula(&[&[1, 2], &[-1, -2]]);
        let here = solve(&possible, &[], Budget::DEFAULT);
        check(&possible, Some(Said::Unsatisfiable(certificate.proof.clone())), &here);
        check(&possible, Some(Said::Satisfiable(vec![true, true])), &here);
        check(&possible, Some(Said::Satisfiable(vec![true])), &here);
        let asked = Rc::new(Cell::new(0));
        let other = Box::new(Scripted(asked, Some(Said::Satisfiable(vec![false, true]))));
        let taken = through(other, || solve(&possible, &[], Budget::DEFAULT));
        assert_eq!(taken, Outcome::Satisfiable { model: vec![false, true] }, "a true answer is taken");
    }
}
