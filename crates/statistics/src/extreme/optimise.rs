//! Nelder and Mead's search for the least value of a function ("A simplex method for function minimization", The
//! Computer Journal 7, 1965): no derivative, and it survives places where the function is infinite.

/// The place of the least value found from `start` with first steps of `step`, and the value.
pub(super) fn minimise<const N: usize>(
    start: [f64; N],
    step: [f64; N],
    of: impl Fn(&[f64; N]) -> f64,
) -> ([f64; N], f64) {
    let mut corners = vec![(start, of(&start))];
    for axis in 0..N {
        let mut corner = start;
        corner[axis] += step[axis];
        corners.push((corner, of(&corner)));
    }
    for _ in 0..300 * N {
        corners.sort_by(|a, b| a.1.total_cmp(&b.1));
        if corners[N].1 - corners[0].1 < 1e-7 {
            break;
        }
        improve(&mut corners, &of);
    }
    corners.sort_by(|a, b| a.1.total_cmp(&b.1));
    corners[0]
}

/// One step: reflects the worst corner, stretches where that is best, shrinks where nothing helps. Corners are sorted.
fn improve<const N: usize>(corners: &mut [([f64; N], f64)], of: impl Fn(&[f64; N]) -> f64) {
    let (worst, value) = corners[N];
    let mut centre = [0.0; N];
    for (corner, _) in &corners[..N] {
        (0..N).for_each(|axis| centre[axis] += corner[axis] / N as f64);
    }
    let along = |way: f64| {
        let place = std::array::from_fn(|axis| centre[axis] + way * (centre[axis] - worst[axis]));
        (place, of(&place))
    };
    let reflected = along(1.0);
    if reflected.1 < corners[0].1 {
        let stretched = along(2.0);
        corners[N] = if stretched.1 < reflected.1 { stretched } else { reflected };
        return;
    }
    if reflected.1 < corners[N - 1].1 {
        corners[N] = reflected;
        return;
    }
    let inner = along(if reflected.1 < value { 0.5 } else { -0.5 });
    if inner.1 < value.min(reflected.1) {
        corners[N] = inner;
        return;
    }
    let best = corners[0].0;
    for (corner, value) in &mut corners[1..] {
        *corner = std::array::from_fn(|axis| f64::midpoint(corner[axis], best[axis]));
        *value = of(corner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bottom_of_rosenbrocks_valley_is_found() {
        let valley = |[x, y]: &[f64; 2]| (1.0 - x).powi(2) + 100.0 * (y - x * x).powi(2);
        let ([x, y], value) = minimise([-1.2, 1.0], [0.5, 0.5], valley);
        assert!((x - 1.0).abs() < 1e-3 && (y - 1.0).abs() < 1e-3 && value < 1e-6, "{x} {y}");
    }

    #[test]
    fn infinite_places_are_left() {
        let walled = |[x]: &[f64; 1]| if *x < 0.0 { f64::INFINITY } else { (x - 0.001).abs() };
        assert!(minimise([3.0], [-5.0], walled).0[0] < 0.002);
    }
}
