package trust

import (
	"context"
	"errors"
	"testing"

	api "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// TestDomain: the mesh's domain is waited for, followed, and cluster.local where the settings name
// none.
func TestDomain(t *testing.T) {
	d := NewDomain("")
	ended, end := context.WithCancel(t.Context())
	end()
	if err := d.Saw(&state.State{}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Name(ended); !errors.Is(err, sdk.ErrUnavailable) {
		t.Errorf("nobody has said it, and the error is %v", err)
	}
	var b state.Builder
	epoch := &pb.Revision{Epoch: 1, Number: 1}
	see := func(whole bool, payload []byte) error {
		t.Helper()
		m := &pb.State{Whole: whole, Revision: epoch}
		if payload != nil {
			m.Tables = []*pb.TableRows{{Table: state.Mesh, Upserts: []*pb.Row{{Key: state.Mesh, Payload: payload}}}}
		}
		change, err := b.Apply(m)
		if err != nil {
			t.Fatal(err)
		}
		epoch = &pb.Revision{Epoch: 1, Number: epoch.Number + 1}
		return d.Saw(change.State)
	}
	is := func(want string) {
		t.Helper()
		if got, err := d.Name(t.Context()); got != want || err != nil {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	if err := see(true, nil); err != nil {
		t.Error(err)
	}
	is("cluster.local")
	settings, err := kinds.Encode(&api.MeshConfig{TrustDomain: "corp.example"})
	if err != nil {
		t.Fatal(err)
	}
	if err := see(false, settings); err != nil {
		t.Error(err)
	}
	is("corp.example")
	if see(false, []byte("{")) == nil {
		t.Error("settings that can't be read are no error")
	}
	is("corp.example")
	d = NewDomain("fixed.example")
	is("fixed.example")
}

func TestAccount(t *testing.T) {
	for user, want := range map[string]string{
		"system:serviceaccount:shop:web": "shop/web", "system:serviceaccount:shop:a.b-c": "shop/a.b-c",
		"system:serviceaccount:shop": "", "system:serviceaccount:shop:web:more": "", "system:serviceaccount::web": "", "system:serviceaccount:shop:": "",
		"system:serviceaccount:a/sa/b:web": "", "system:serviceaccount:shop:we b": "", "jane": "", "system:node:a": "", "": "",
	} {
		namespace, name, ok := Account(user)
		if ok != (want != "") || ok && namespace+"/"+name != want {
			t.Errorf("%q: %q %q %v", user, namespace, name, ok)
		}
	}
}
