package load

import "time"

// Times is a histogram: how many answers took how long, by bucket.
type Times []uint64

// Since returns what was added since an earlier reading.
func (t Times) Since(before Times) Times {
	if len(before) != len(t) {
		return t
	}
	added := make(Times, len(t))
	for i := range t {
		if t[i] < before[i] { // The core has started anew.
			return t
		}
		added[i] = t[i] - before[i]
	}
	return added
}

// Count of all.
func (t Times) Count() (n uint64) {
	for _, in := range t {
		n += in
	}
	return n
}

// Quantile estimates what a share of the answers took at most, 0 if there were none: as if those of
// a bucket lay evenly in it.
func (t Times) Quantile(share float64) time.Duration {
	rank := share * float64(t.Count())
	low := time.Duration(0)
	for i, n := range t {
		if i == len(bounds) {
			break
		}
		if n > 0 && float64(n) >= rank {
			return low + time.Duration(float64(bounds[i]-low)*rank/float64(n))
		}
		rank -= float64(n)
		low = bounds[i]
	}
	if t.Count() == 0 {
		return 0
	}
	return low
}

// Cumulative has how many took at most so many seconds, as metrics have it.
func (t Times) Cumulative() map[float64]uint64 {
	all, sum := map[float64]uint64{}, uint64(0)
	for i, n := range t {
		if i < len(bounds) {
			sum += n
			all[bounds[i].Seconds()] = sum
		}
	}
	return all
}
