package vault

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/catalog"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// source is a folder of a store as a config source.
type source struct {
	config Config
	server *server
}

// newSource returns the source of a config; an error says that its certificates can't be read.
func newSource(c Config) (*source, error) {
	s, err := newServer(c)
	if err != nil {
		return nil, err
	}
	return &source{c, s}, nil
}

// again is how soon another look follows the first one that fails.
const again = 2 * time.Second

// Run publishes what the folder holds, and looks at it again and again, until ctx ends. What can't
// be looked at changes nothing.
func (s *source) Run(ctx context.Context, out sdk.Publisher) error {
	defer s.server.client.CloneConfig().HttpClient.CloseIdleConnections()
	p := &publication{config: s.config, out: out, catalog: catalog.New(), away: kinds.NewFaultSet(time.Now), there: map[string]bool{}}
	for failed := 0; ctx.Err() == nil; {
		looking, cancel := context.WithTimeout(ctx, s.config.Timeout)
		all, err := s.look(looking)
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		if err := p.take(all, err); err != nil {
			return err
		}
		pause := s.config.Interval - rand.N(s.config.Interval/10) // replicas don't come all at once
		switch failed++; {
		case err == nil:
			failed = 0
			sdk.Found(ctx)
		case failed == 1:
			pause = min(pause, again)
		default:
			sdk.Lost(ctx, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

// look reads the folder: what it has, by the secrets' names below it.
func (s *source) look(ctx context.Context) (map[string]found, error) {
	if err := s.server.login(ctx); err != nil {
		return nil, err
	}
	names, err := s.names(ctx)
	if err != nil {
		return nil, err
	}
	all := make(map[string]found, len(names))
	for _, name := range names {
		f, err := s.server.get(ctx, path.Join(s.config.Path, name))
		if err != nil {
			return nil, err
		}
		if f.values != nil || f.err != nil {
			all[name] = f
		}
	}
	return all, nil
}

// names returns the secrets of the folder: NAME with a namespace for all, otherwise NAMESPACE/NAME.
func (s *source) names(ctx context.Context) (names []string, err error) {
	folders := []string{""}
	if s.config.Namespace == "" {
		if folders, err = s.below(ctx, "", true); err != nil {
			return nil, err
		}
	}
	for _, folder := range folders {
		some, err := s.below(ctx, folder, false)
		if err != nil {
			return nil, err
		}
		if names = append(names, some...); len(names) > s.config.Limits.Secrets {
			return nil, fmt.Errorf("%s has more than %d secrets (limits.secrets)", place(s.config, s.config.Path), s.config.Limits.Secrets)
		}
	}
	return names, nil
}

// below returns the folders, or the secrets, in a folder below the path.
func (s *source) below(ctx context.Context, folder string, folders bool) (names []string, err error) {
	all, err := s.server.list(ctx, path.Join(s.config.Path, folder))
	for _, name := range all {
		bare, isFolder := strings.CutSuffix(name, "/")
		if isFolder == folders && bare != "" && !strings.ContainsAny(bare, "/@?#%") {
			names = append(names, path.Join(folder, bare))
		}
	}
	return names, err
}

// publication is what was published of a folder.
type publication struct {
	config  Config
	out     sdk.Publisher
	catalog *catalog.Catalog
	// there are the names of secrets that were read last, away is what is wrong with the server.
	there  map[string]bool
	away   kinds.FaultSet
	synced bool
}

// take publishes what a look changes. Why nobody could be asked is shown.
func (p *publication) take(all map[string]found, err error) error {
	if err := p.show(err); err != nil {
		return err
	}
	if err != nil {
		return nil
	}
	for name := range p.there {
		if _, still := all[name]; !still {
			p.catalog.Drop(name)
			delete(p.there, name)
		}
	}
	for name, f := range all {
		p.there[name] = true
		p.catalog.Offer(name, place(p.config, path.Join(p.config.Path, name)), []kinds.Document{p.document(name, f)})
	}
	return p.publish()
}

// document is a secret as one of a Secret. Faults have nothing of its values.
func (p *publication) document(name string, f found) kinds.Document {
	namespace, short := p.config.Namespace, name
	if namespace == "" {
		namespace, short = path.Split(name)
		namespace = strings.TrimSuffix(namespace, "/")
	}
	at := place(p.config, path.Join(p.config.Path, name))
	d := kinds.Document{Table: secrets.SecretTable, Namespace: namespace, Name: short}
	data := map[string][]byte{}
	for key, value := range f.values {
		if secrets.Wanted(secrets.Secret, key) {
			data[key] = value
		}
	}
	err := f.err
	switch {
	case err != nil:
	case len(data) == 0:
		err = errors.New("it has none of the values of a certificate, such as tls.crt and tls.key")
	default:
		err = secrets.Check(data)
	}
	if err != nil {
		d.Faults = []kinds.Fault{{File: at, Kind: secrets.Secret, Namespace: namespace, Name: short, Code: kinds.CodeSecret, Message: err.Error()}}
		return d
	}
	d.Row = &sdk.Row{Key: kinds.Key(namespace, short), Source: at, Payload: secrets.Content{Data: data}.Encode()}
	return d
}

// publish publishes what has changed, and what is wrong with secrets.
func (p *publication) publish() error {
	ch := p.catalog.Settle()
	for _, table := range ch.Tables() {
		if err := p.out.Update(table, ch.Upserts[table], ch.Deletes[table]); err != nil {
			return err
		}
	}
	if err := p.tell(ch.Faults, "nothing is wrong with the store's secrets any more"); err != nil || p.synced {
		return err
	}
	p.synced = true
	return p.out.Synced()
}

// show shows what is wrong with the server; nil: nothing.
func (p *publication) show(err error) error {
	var faults []kinds.Fault
	if err != nil {
		f := kinds.Fault{
			File: place(p.config, p.config.Path), Code: kinds.CodeFile, Message: "the store can't be read: " + err.Error(),
			Hint: "what was read last stays, and it is tried again",
		}
		if !p.synced {
			f.Hint = "it is tried again; the first list waits for it"
		}
		faults = append(faults, f)
	}
	return p.tell(p.away.Show(faults), "the store can be read again")
}

// tell publishes faults and logs those that are new.
func (p *publication) tell(c kinds.FaultChange, healed string) error {
	for _, f := range c.New {
		p.out.Log(f.Level(), f.Error())
	}
	if c.Healed {
		p.out.Log(sdk.Info, healed, "address", p.config.Address)
	}
	if len(c.Upserts)+len(c.Deletes) == 0 {
		return nil
	}
	return p.out.Update(kinds.FaultTable, c.Upserts, c.Deletes)
}
