//! A kit for tests of machines and workflows: no disk, no waiting, no chance.
//!
//! Timers, delays, limits and retries happen at once, for the clock jumps to the next instant at which something can
//! happen. It says how much time that would have been.
//!
//! ```
//! use tollgate::flows::{Machine, NewRun, Step, StepError, StepOutcome, done, next};
//! use tollgate::test_kit::{KitError, TestKit, WaitsFor};
//! use tollgate::{Limit, Span, global};
//!
//! struct Greets;
//!
//! impl Machine for Greets {
//!     const NAME: &'static str = "greets";
//!     type State = u32;
//!
//!     async fn step(&self, step: Step<u32>) -> Result<StepOutcome, StepError> {
//!         let left = step.state;
//!         Ok(if left == 0 { done("all greeted") } else { next("greet", left - 1).pays(global("mail")) })
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let kit = TestKit::new().await?;
//! kit.gate().limit("mail", Limit::per_second(1)).await?;
//! let run = kit.flows().start(NewRun::new::<Greets>("begin", 3)).await?.run;
//!
//! // Nobody makes its steps yet: that is told, and nothing hangs.
//! let waits = kit.finish(&run).await;
//! assert!(matches!(waits, Err(KitError::Waits { what: WaitsFor::Worker { .. }, .. })));
//!
//! kit.machine(Greets);
//! let ended = kit.finish(&run).await?;
//! assert_eq!(ended.ending.value::<String>().unwrap()?, "all greeted");
//! assert_eq!(kit.elapsed(), Span::from_secs(2), "three steps at one per second");
//! # Ok::<(), StepError>(())
//! # }).unwrap();
//! ```

pub use crate::gate::TestKit;
pub use tollgate_engine::flows::{KitError, WaitsFor};
