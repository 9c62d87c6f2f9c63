package vault

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/remote"
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

// Run publishes what the folder holds, and looks at it again and again, until ctx ends. What can't
// be looked at changes nothing.
func (s *source) Run(ctx context.Context, out sdk.Publisher) error {
	defer s.server.client.CloneConfig().HttpClient.CloseIdleConnections()
	p := newPublication(s.config, out)
	return remote.Follow(ctx, s.config.Interval, s.config.Timeout, func(ctx context.Context) (take func() error, away error) {
		all, err := s.look(ctx)
		return func() error { return p.handle(all, err) }, err
	})
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
	*remote.Publication
	config Config
	// there are the names of secrets that were read last.
	there map[string]bool
}

func newPublication(c Config, out sdk.Publisher) *publication {
	return &publication{
		Publication: remote.NewPublication(out, remote.Names{
			Place: place(c, c.Path), Whole: "the store", Parts: "the store's secrets", Fields: []any{"address", c.Address},
		}),
		config: c, there: map[string]bool{},
	}
}

// handle publishes what a look changes. Why nobody could be asked is shown.
func (p *publication) handle(all map[string]found, err error) error {
	if err := p.Show(err); err != nil {
		return err
	}
	if err != nil {
		return nil
	}
	for name := range p.there {
		if _, still := all[name]; !still {
			p.Catalog.Drop(name)
			delete(p.there, name)
		}
	}
	for name, f := range all {
		p.there[name] = true
		p.Catalog.Offer(name, place(p.config, path.Join(p.config.Path, name)), []kinds.Document{p.document(name, f)})
	}
	return p.Publish()
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
