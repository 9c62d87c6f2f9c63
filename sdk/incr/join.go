package incr

// Pair is the key of an element that Join made from two.
type Pair[A, B comparable] struct {
	Left  A
	Right B
}

// Join is the collection of what f makes of each pair of elements that have a join key in common.
// It works pair by pair: what f makes of one pair costs nothing to the others.
func Join[A, B, J comparable, VA, VB, V any](
	left Collection[A, VA], right Collection[B, VB], name string,
	byLeft func(k A, v VA) []J, byRight func(k B, v VB) []J,
	equal func(a, b V) bool, f func(c *Ctx, k Pair[A, B], a VA, b VB) (V, error),
) Collection[Pair[A, B], V] {
	pairs := newPairs(left, right, name, byLeft, byRight)
	return Map(pairs, name, equal, func(c *Ctx, k Pair[A, B], _ struct{}) (V, error) {
		a, okLeft := left.Get(c, k.Left)
		b, okRight := right.Get(c, k.Right)
		if !okLeft || !okRight {
			var none V
			return none, Absent
		}
		return f(c, k, a, b)
	})
}
