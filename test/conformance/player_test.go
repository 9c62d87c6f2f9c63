package conformance

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
)

// player plays one scenario.
type player struct {
	*server
	delta, apart, documented bool
	conn                     *grpc.ClientConn
	streams                  map[string]*conversation
	// has are versions, by kind, name and content.
	has map[string]string
	// versions are the last of each kind, of the state of the world.
	versions map[string]string
}

// conversation is a stream with what was received on it.
type conversation struct {
	*stream
	pending []*response
	nonces  map[string][]string
	// fences that were subscribed to, and extensions that the scenario's client wants besides.
	fences, extensions []string
}

func (p *player) line(verb string, words []string) error {
	switch verb {
	case "see":
		p.documented = len(words) > 1
	case "delta":
		p.delta = true
	case "apart", "together", "each": // variants are made of them
	case "reconnect":
		if err := p.finish(); err != nil {
			return err
		}
		p.stop()
	case "served":
		return p.served(words)
	case "client":
		if p.offered == nil {
			return errors.New("say first what is served")
		}
		return p.client(words[0], words[1:])
	case "server":
		return p.says(strings.Join(words, " "))
	default:
		return fmt.Errorf("unknown word %q", verb)
	}
	return nil
}

// on returns the stream for a kind.
func (p *player) on(kind string) (*conversation, error) {
	if !p.apart {
		kind = "ads"
	}
	if c := p.streams[kind]; c != nil {
		return c, nil
	}
	if p.conn == nil {
		conn, err := grpc.NewClient(p.plane.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, err
		}
		p.conn, p.streams = conn, map[string]*conversation{}
	}
	s, err := open(p.conn, kind, p.delta)
	if err != nil {
		return nil, err
	}
	c := &conversation{stream: s, nonces: map[string][]string{}}
	p.streams[kind] = c
	return c, nil
}

// stop closes the connection.
func (p *player) stop() {
	for _, c := range p.streams {
		c.stop()
		for range c.received { // until it has ended
		}
	}
	if p.conn != nil {
		_ = p.conn.Close()
	}
	p.conn, p.streams = nil, nil
}

// finish ends all streams; the server must have said no more.
func (p *player) finish() error {
	for _, kind := range slices.Sorted(maps.Keys(p.streams)) {
		c := p.streams[kind]
		rest, err := c.finish()
		for _, r := range rest {
			c.take(r)
		}
		if len(c.pending) > 0 {
			return fmt.Errorf("the server says: %s", c.pending[0])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// served changes the files, and waits until the server has taken them.
func (p *player) served(words []string) error {
	if p.offered == nil {
		p.offered = offered{}
	}
	for part := range strings.SplitSeq(strings.Join(words, " "), "/") {
		f := strings.Fields(part)
		set := map[string]string{}
		for _, w := range f[1:] {
			set[before(w, "=")] = after(w, "=")
		}
		p.offered[f[0]] = set
	}
	if err := p.publish(); err != nil {
		return err
	}
	return p.observe()
}

func before(s, sep string) string { b, _, _ := strings.Cut(s, sep); return b }
func after(s, sep string) string  { _, a, _ := strings.Cut(s, sep); return a }

func (p *player) client(kind string, words []string) error {
	c, err := p.on(kind)
	if err != nil {
		return err
	}
	r := request{kind: kind, initial: map[string]string{}}
	for _, w := range words {
		switch {
		case w == "nack":
			r.refused = &status.Status{Code: int32(codes.InvalidArgument), Message: "the scenario refuses it"}
			fallthrough
		case w == "ack", w == "stale":
			if r.nonce, err = c.nonce(kind, w == "stale"); err != nil {
				return err
			}
		case w == "foreign":
			r.nonce = "of another stream"
		case w == "version":
			r.version = p.versions[kind]
		case strings.Contains(w, "@"):
			name := before(w, "@")
			r.initial[name] = "never had"
			if v, ok := p.has[kind+"/"+name+"="+after(w, "@")]; ok {
				r.initial[name] = v
			}
		case w[0] == '+':
			r.subscribe = append(r.subscribe, w[1:])
		case w[0] == '-':
			r.unsubscribe = append(r.unsubscribe, w[1:])
		default:
			r.names = append(r.names, strings.Trim(w, `"`)) // "" is the empty name
		}
	}
	if kind == fenceKind {
		c.extensions = r.names
	}
	return c.send(r)
}

func (c *conversation) nonce(kind string, stale bool) (string, error) {
	received := c.nonces[kind]
	back := 1
	if stale {
		back = 2
	}
	if len(received) < back {
		return "", errors.New("there is no such response to answer")
	}
	return received[len(received)-back], nil
}

// says checks the next response.
func (p *player) says(want string) error {
	if want == "nothing" {
		return p.silent()
	}
	c, err := p.on(before(want, " "))
	if err != nil {
		return err
	}
	for len(c.pending) == 0 {
		r, err := c.next()
		if err != nil {
			return err
		}
		c.take(r)
	}
	r := c.pending[0]
	c.pending = c.pending[1:]
	p.note(r)
	if got := r.String(); got != want {
		return fmt.Errorf("it says: %s", got)
	}
	return nil
}

func (p *player) note(r *response) {
	if p.versions == nil {
		p.versions = map[string]string{}
	}
	p.versions[r.kind] = r.version
	for name, content := range r.resources {
		p.has[r.kind+"/"+name+"="+content] = r.versions[name]
	}
}

// silent checks that the server has nothing to say.
func (p *player) silent() error {
	if p.apart { // nothing can be asked for besides that would come behind
		return nil
	}
	c, err := p.on("ads")
	if err != nil {
		return err
	}
	if err := p.fence(c); err != nil {
		return err
	}
	if len(c.pending) > 0 {
		return fmt.Errorf("it says: %s", c.pending[0])
	}
	return nil
}

// put writes a file as a whole.
func put(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := replace(path, text); err != nil {
		t.Fatal(err)
	}
}

func replace(path string, text []byte) error {
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
