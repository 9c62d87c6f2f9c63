package budget

import (
	"fmt"

	"google.golang.org/grpc/codes"
)

// Level of a process's overload.
type Level int

const (
	// Calm: all are served.
	Calm Level = iota
	// Shedding: no stream may begin; those that there are are served.
	Shedding
	// Ending: the heaviest streams are ended, too.
	Ending
)

func (l Level) String() string { return [...]string{"calm", "shedding", "ending"}[l] }

// Shares of the limit, in percent, from which on a level is entered, and below which it is left again: a value near one of them doesn't make it flutter.
var enters, leaves = [...]uint64{Shedding: 80, Ending: 90}, [...]uint64{Shedding: 70, Ending: 85}

// Next returns the level after one at which so much memory is used. A limit of 0 is none.
func (l Level) Next(used, limit uint64) Level {
	if limit == 0 {
		return Calm
	}
	share := uint64(float64(used) / float64(limit) * 100)
	for l < Ending && share >= enters[l+1] {
		l++
	}
	for l > Calm && share < leaves[l] {
		l--
	}
	return l
}

// Short says why a stream may not begin or go on: the process runs short of memory.
func Short(used, limit uint64) error {
	return &Refusal{Limit: "memoryLimit", Code: codes.Unavailable, Text: fmt.Sprintf(
		"the control plane runs short of memory: it uses %d MiB of memoryLimit, %d MiB: connect to another replica, or later, or give it more", used>>20, limit>>20)}
}

// Heaviest chooses which streams end next by what each weighs: one in twenty at most, the heaviest, and none that wouldn't make a difference, which is a thousandth
// of the limit. The weights are sorted, the heaviest first; it returns how many of them are to end.
func Heaviest(weights []int64, limit uint64) (many int) {
	most := (len(weights) + 19) / 20
	for _, w := range weights {
		if many == most || uint64(w) < limit/1000 {
			break
		}
		many++
	}
	return many
}
