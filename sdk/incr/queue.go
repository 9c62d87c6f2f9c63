package incr

// queue holds nodes that must run, by height. A node may have been lifted since it was put in.
type queue struct {
	levels [][]id
	first  int
}

func (q *queue) add(n id, height int32) {
	h := int(height)
	for h >= len(q.levels) {
		q.levels = append(q.levels, nil)
	}
	q.levels[h] = append(q.levels[h], n)
	q.first = min(q.first, h)
}

// pop returns the lowest nodes and their height; none are left where the slice is empty.
func (q *queue) pop() ([]id, int32) {
	for ; q.first < len(q.levels); q.first++ {
		if level := q.levels[q.first]; len(level) > 0 {
			q.levels[q.first] = nil
			return level, int32(q.first)
		}
	}
	return nil, 0
}
