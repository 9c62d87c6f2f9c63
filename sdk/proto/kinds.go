package proto

import (
	"maps"
	"slices"
)

// KindTraits say what the plugins of a kind do. What depends on a kind asks them, so that a new
// kind is a number in session.proto and a row of Kinds.
type KindTraits struct {
	// Word is the kind in plugins.yaml.
	Word string
	// Rank orders kinds by who reads from whom: changes of plugins.yaml are made in this order.
	Rank int
	// Source: it is there to publish rows, which count once they are complete (Synced), and are
	// waited for.
	Source bool
	// Rows: its rows may be those of others, too, and go when their source is away for long (merge
	// and onLoss in plugins.yaml).
	Rows bool
	// Stores: it may take writes of objects.
	Stores bool
	// Generates: it makes resources for proxies, in views.
	Generates bool
	// Patches: it changes resources that others make.
	Patches bool
	// Authenticates: it says who is calling.
	Authenticates bool
	// Acts: it changes what is outside, so that two of one kind never run at once, one that is
	// tried does not run at all, and none does where nothing is to be written.
	Acts bool
	// Answers: it answers calls, of methods that it names.
	Answers bool
	// Asked: it may have nothing to do but to answer, so that it may start on demand before
	// anything is published.
	Asked bool
	// Sleeps: it may start on demand.
	Sleeps bool
}

// Kinds has the traits of each kind that the contract numbers.
var Kinds = map[Kind]KindTraits{
	KindAuthenticator: {Word: "authenticator", Rank: 1, Authenticates: true, Asked: true, Sleeps: true},
	KindConfig:        {Word: "config", Rank: 2, Source: true, Rows: true, Stores: true, Sleeps: true},
	KindRegistry:      {Word: "registry", Rank: 3, Source: true, Rows: true, Sleeps: true},
	KindController:    {Word: "controller", Rank: 4, Rows: true, Acts: true, Answers: true, Asked: true, Sleeps: true},
	KindGenerator:     {Word: "generator", Rank: 5, Generates: true, Sleeps: true},
	KindPatch:         {Word: "patch", Rank: 6, Patches: true},
}

// KindOf returns the kind that plugins.yaml has a word for; none: KindUnspecified.
func KindOf(word string) Kind {
	for k, t := range Kinds {
		if t.Word == word {
			return k
		}
	}
	return KindUnspecified
}

// KindWords returns the words for kinds, by number.
func KindWords() (words []string) {
	for _, k := range slices.Sorted(maps.Keys(Kinds)) {
		words = append(words, k.Word())
	}
	return words
}

// Word is the kind in plugins.yaml; empty for one that is unknown.
func (x Kind) Word() string { return Kinds[x].Word }

// Rank orders kinds by who reads from whom.
func (x Kind) Rank() int { return Kinds[x].Rank }

// Source reports whether plugins of the kind are there to publish rows.
func (x Kind) Source() bool { return Kinds[x].Source }

// Rows reports whether rows of the kind may be those of others, too.
func (x Kind) Rows() bool { return Kinds[x].Rows }

// Stores reports whether plugins of the kind may take writes.
func (x Kind) Stores() bool { return Kinds[x].Stores }

// Generates reports whether plugins of the kind make resources.
func (x Kind) Generates() bool { return Kinds[x].Generates }

// Patches reports whether plugins of the kind change resources.
func (x Kind) Patches() bool { return Kinds[x].Patches }

// Serves reports whether plugins of the kind have a part in resources.
func (x Kind) Serves() bool { return x.Generates() || x.Patches() }

// Authenticates reports whether plugins of the kind say who is calling.
func (x Kind) Authenticates() bool { return Kinds[x].Authenticates }

// Acts reports whether plugins of the kind change what is outside.
func (x Kind) Acts() bool { return Kinds[x].Acts }

// Answers reports whether plugins of the kind answer calls.
func (x Kind) Answers() bool { return Kinds[x].Answers }

// Asked reports whether plugins of the kind may have nothing to do but to answer.
func (x Kind) Asked() bool { return Kinds[x].Asked }

// Sleeps reports whether plugins of the kind may start on demand.
func (x Kind) Sleeps() bool { return Kinds[x].Sleeps }
