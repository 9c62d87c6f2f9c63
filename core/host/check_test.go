package host

import (
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/manifest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

func TestCheck(t *testing.T) {
	cds, eds := string(manifest.ShortTypes()["CDS"]), string(manifest.ShortTypes()["EDS"])
	for _, c := range []struct {
		name  string
		entry manifest.Entry
		ready pb.Ready
		want  string
	}{
		{"generator", manifest.Entry{Kind: "generator", Types: []manifest.TypeURL{manifest.TypeURL(eds)}},
			pb.Ready{Kind: pb.KindGenerator, Types: []*pb.Type{{Url: cds}, {Url: eds}}, Reads: []*pb.Read{{Table: "networking.istio.io/Gateway"}}}, ""},
		{"source that reads", manifest.Entry{Kind: "registry"},
			pb.Ready{Kind: pb.KindRegistry, Reads: []*pb.Read{{Table: "services", Sources: true}}, Publishes: []string{"services"}}, ""},
		{"authenticator", manifest.Entry{Kind: "authenticator"}, pb.Ready{Kind: pb.KindAuthenticator}, ""},

		{
			"version", manifest.Entry{Kind: "controller"}, pb.Ready{Version: 9, Kind: pb.KindController},
			"it chose version 9 of the contract, this core speaks 1",
		},
		{"kind", manifest.Entry{Kind: "patch"}, pb.Ready{Kind: pb.KindGenerator}, "it is a plugin of kind generator, the entry says patch"},
		{"no kind", manifest.Entry{Kind: "patch"}, pb.Ready{Kind: 77}, "kind nothing that this core knows, the entry says patch"},
		{"no name", manifest.Entry{Kind: "controller"}, pb.Ready{Kind: pb.KindController, Plugin: "-"}, "no plugin name"},
		{"schema", manifest.Entry{Kind: "controller"}, pb.Ready{Kind: pb.KindController, ConfigSchema: []byte("{")}, "schema of its config is no JSON"},
		{"no types", manifest.Entry{Kind: "generator"}, pb.Ready{Kind: pb.KindGenerator}, "declares no resource types"},
		{"types of a source", manifest.Entry{Kind: "config"},
			pb.Ready{Kind: pb.KindConfig, Publishes: []string{"a"}, Types: []*pb.Type{{Url: cds}}}, "which a plugin of kind config has not"},
		{"type twice", manifest.Entry{Kind: "generator"}, pb.Ready{Kind: pb.KindGenerator, Types: []*pb.Type{{Url: cds}, {Url: cds}}}, "stands there twice"},
		{"type not offered", manifest.Entry{Kind: "generator", Types: []manifest.TypeURL{manifest.TypeURL(eds)}},
			pb.Ready{Kind: pb.KindGenerator, Types: []*pb.Type{{Url: cds}}}, "ClusterLoadAssignment, which it does not offer"},
		{"publishes nothing", manifest.Entry{Kind: "config"}, pb.Ready{Kind: pb.KindConfig}, "publishes no table"},
		{"derives from nothing", manifest.Entry{Kind: "registry"},
			pb.Ready{Kind: pb.KindRegistry, Publishes: []string{"services"}, Derives: true}, "must say which tables it reads"},
		{"table name", manifest.Entry{Kind: "config"}, pb.Ready{Kind: pb.KindConfig, Publishes: []string{"a b"}}, `a table named "a b"`},
		{
			"suffix", manifest.Entry{Kind: "controller"},
			pb.Ready{Kind: pb.KindController, Reads: []*pb.Read{{Table: "services@sources"}}},
			"a name is like services",
		},
		{"table twice", manifest.Entry{Kind: "config"}, pb.Ready{Kind: pb.KindConfig, Publishes: []string{"a", "a"}}, "it publishes the table a twice"},
		{"store", manifest.Entry{Kind: "config"}, pb.Ready{Kind: pb.KindConfig, Publishes: []string{"a/b"}, Writes: []string{"a/b"}}, ""},
		{"writes what it doesn't publish", manifest.Entry{Kind: "config"},
			pb.Ready{Kind: pb.KindConfig, Publishes: []string{"a"}, Writes: []string{"b"}}, ""},
		{"writes of a registry", manifest.Entry{Kind: "registry"},
			pb.Ready{Kind: pb.KindRegistry, Publishes: []string{"a"}, Writes: []string{"a"}}, "only a plugin of kind config can"},
		{"writes of a deriver", manifest.Entry{Kind: "config"},
			pb.Ready{Kind: pb.KindConfig, Derives: true, Reads: []*pb.Read{{Table: "b"}}, Publishes: []string{"a"}, Writes: []string{"a"}},
			"that derives nothing"},
		{"writes twice", manifest.Entry{Kind: "config"},
			pb.Ready{Kind: pb.KindConfig, Publishes: []string{"a"}, Writes: []string{"a", "a"}}, "it writes the table a twice"},
		{"secrets", manifest.Entry{Kind: "config"},
			pb.Ready{Kind: pb.KindConfig, Publishes: []string{"a"}, Reads: []*pb.Read{{Table: "b"}}, Writes: []string{"c"}, Secrets: []string{"a", "b", "c"}},
			""},
		{"secrets of others", manifest.Entry{Kind: "config"},
			pb.Ready{Kind: pb.KindConfig, Publishes: []string{"a"}, Secrets: []string{"b"}},
			"the table b are secrets, which it neither reads nor publishes nor writes"},
		{"secrets that are shown", manifest.Entry{Kind: "config"},
			pb.Ready{Kind: pb.KindConfig, Publishes: []string{"services"}, Secrets: []string{"services"}}, "keep secrets in a table of their own"},
		{"secrets twice", manifest.Entry{Kind: "config"},
			pb.Ready{Kind: pb.KindConfig, Publishes: []string{"a"}, Secrets: []string{"a", "a"}}, "it has the secrets of the table a twice"},
		{
			"headers", manifest.Entry{Kind: "authenticator"},
			pb.Ready{Kind: pb.KindAuthenticator, Headers: &pb.HeaderNames{Names: []string{"authorization"}}}, "",
		},
		{"no headers", manifest.Entry{Kind: "authenticator"}, pb.Ready{Kind: pb.KindAuthenticator, Headers: &pb.HeaderNames{}}, ""},
		{"another header", manifest.Entry{Kind: "authenticator"},
			pb.Ready{Kind: pb.KindAuthenticator, Headers: &pb.HeaderNames{Names: []string{"cookie"}}}, "others that its entry names in `headers`"},
		{"headers for nothing", manifest.Entry{Kind: "config"},
			pb.Ready{Kind: pb.KindConfig, Publishes: []string{"a"}, Headers: &pb.HeaderNames{}}, "which a plugin of kind config isn't shown"},
		{"the core's table", manifest.Entry{Kind: "config"}, pb.Ready{Kind: pb.KindConfig, Publishes: []string{"proxies"}}, "the core's own"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.ready.Version == 0 {
				c.ready.Version = 1
			}
			switch c.ready.Plugin {
			case "":
				c.ready.Plugin = "p"
			case "-":
				c.ready.Plugin = ""
			}
			err := check(&c.entry, &c.ready)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
