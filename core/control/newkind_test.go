package control

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// TestNewKind: a kind of plugins that has a row of pb.Kinds and nothing else can be declared, and
// takes the part that its traits say (docs/guides/new-kind.md).
func TestNewKind(t *testing.T) {
	const survey pb.Kind = 77
	pb.Kinds[survey] = pb.KindTraits{Word: "survey", Rank: 3, Source: true, Rows: true}
	defer delete(pb.Kinds, survey)

	t.Run("plugins.yaml", func(t *testing.T) {
		if !slices.Contains(manifest.Kinds(), "survey") || manifest.KindOf(survey) != "survey" {
			t.Errorf("the words are %q", manifest.Kinds())
		}
		set, err := manifest.Parse("plugins.yaml", []byte(
			"plugins:\n- {name: s, kind: survey, process: {command: s}, merge: {priority: 3}}\n"))
		if err != nil {
			t.Fatal(err)
		}
		if e, _ := set.Get("s"); e == nil || e.Kind.Proto() != survey || e.Priority() != 3 {
			t.Errorf("the entry is %+v", e)
		}
		for field, want := range map[string]string{
			"start: onDemand": "a survey plugin is always wanted",
			"types: [T]":      "a survey plugin serves none",
			"headers: [x-a]":  "a survey plugin is asked about no callers",
			"onFailure: skip": "a survey plugin has last-good or block",
		} {
			_, err := manifest.Parse("plugins.yaml", []byte("plugins:\n- {name: s, kind: survey, process: {command: s}, "+field+"}\n"))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", field, err)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil, state.Expected{Name: "s", Kind: survey}, istio)
		g := b.join("istio", readyIstio())
		s := b.join("s", readyMemory())
		s.rows("services", nil, row("ns/a.com", "1"))
		if got := g.state(); got != nil {
			t.Errorf("the first revision did not wait for the source: %v", got)
		}
		s.synced()
		if got := g.state(); got == nil || len(got.Tables) == 0 || got.Tables[0].Upserts[0].Key != "ns/a.com" {
			t.Errorf("the generator was sent %v", got)
		}
	})
}
