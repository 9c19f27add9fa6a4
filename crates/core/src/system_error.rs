//! The class of an error of the operating system.

use std::io;

use crate::{FaultClass, OutsideCause};

impl FaultClass {
    /// [`FaultClass::Process`] if the machine has run out of something (see [`OutsideCause`]), `otherwise` if not: the path,
    /// address or file itself is to blame, and whoever named it knows which class that is.
    ///
    /// ```
    /// use std::io;
    /// use tenaz_core::FaultClass;
    ///
    /// let full = io::Error::from(io::ErrorKind::StorageFull);
    /// assert_eq!(FaultClass::of_system_error(&full, FaultClass::Data), FaultClass::Process);
    /// let absent = io::Error::from(io::ErrorKind::NotFound);
    /// assert_eq!(FaultClass::of_system_error(&absent, FaultClass::Data), FaultClass::Data);
    /// ```
    pub fn of_system_error(error: &io::Error, otherwise: Self) -> Self {
        match OutsideCause::of_error(error) {
            Some(_) => Self::Process,
            None => otherwise,
        }
    }
}
