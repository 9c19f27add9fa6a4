//! Which instructions the processor has.

/// The ways in which chunks are read; all give the same rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Simd {
    /// 64 bytes, or eight numbers, at a time.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 32 bytes, or four numbers, at a time.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Portable,
}

impl Simd {
    /// The fastest way this processor knows.
    pub(crate) fn detect() -> Self {
        Self::all()[0]
    }

    /// Every way this processor knows, the fastest first.
    pub(crate) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        #[cfg(target_arch = "x86_64")]
        if has_avx2() {
            if has_avx512() {
                all.push(Simd::Avx512);
            }
            all.push(Simd::Avx2);
        }
        all.push(Simd::Portable);
        all
    }
}

/// Whether this processor has what functions for [`Simd::Avx2`] enable.
#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("pclmulqdq")
        && is_x86_feature_detected!("popcnt")
}

/// Whether it has what functions for [`Simd::Avx512`] enable besides.
#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("avx512vpopcntdq")
        && is_x86_feature_detected!("vpclmulqdq")
}
