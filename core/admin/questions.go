package admin

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Tools says what tools ask for by xDS: types that are answered per request, by their type URLs.
type Tools struct {
	// Pages has debug pages; its one name is a page, such as configs or config_dump?proxyID=NODE.
	Pages string
	// Clients has an envoy.service.status.v3.ClientConfig for each proxy.
	Clients string
	// Dump has the parts of an envoy.admin.v3.ConfigDump; its one name is a node.
	Dump string
	// Metadata are the keys of a node's metadata that Clients shows.
	Metadata []string
}

// Questions answers debug types by xDS, as xds.Answerer says. Who asks must have shown who it is:
// callers of the operators' namespace may ask everything, others for proxies of their own
// namespace.
type Questions struct {
	naming caller.Naming
	tools  Tools
	// others has a place for each answer to callers of other namespaces that is being made.
	others chan struct{}
	// server is nil until Attach.
	server *Server
}

// NewQuestions returns Questions that Attach must be called for before it is asked: the xDS server,
// which asks, is made before the pages that show its streams.
func NewQuestions(naming caller.Naming, tools Tools) *Questions {
	return &Questions{naming: naming, tools: tools, others: make(chan struct{}, ofOthers)}
}

// Attach says whose pages they are about.
func (q *Questions) Attach(s *Server) { q.server = s }

// Answers implements xds.Answerer.
func (q *Questions) Answers(typeURL string) bool {
	return typeURL != "" && (typeURL == q.tools.Pages || typeURL == q.tools.Clients || typeURL == q.tools.Dump)
}

// Answer implements xds.Answerer.
func (q *Questions) Answer(asked xds.Question) ([]*view.Body, error) {
	who, err := q.admit(asked)
	if err != nil {
		return nil, err
	}
	if !who.system {
		select {
		case q.others <- struct{}{}:
			defer func() { <-q.others }()
		case <-time.After(turn):
			return nil, status.Errorf(codes.ResourceExhausted, "%d such questions are dealt with already; try again", ofOthers)
		}
	}
	if asked.Type == q.tools.Clients {
		return q.clients(who)
	}
	if len(asked.Names) != 1 {
		return nil, status.Errorf(codes.InvalidArgument, "%s wants one name, not %d", asked.Type, len(asked.Names))
	}
	if asked.Type == q.tools.Dump {
		return q.dump(who, asked.Names[0])
	}
	return q.page(who, asked.Names[0])
}

func (q *Questions) admit(asked xds.Question) (c asker, err error) {
	if c.namespaces = q.naming.Namespaces(asked.Identities); len(c.namespaces) == 0 {
		return c,
			status.Errorf(codes.Unauthenticated, "%s is for authenticated callers: connect by TLS, or to a control plane with --authPlaintext", asked.Type)
	}
	c.system = slices.Contains(c.namespaces, q.naming.Operators)
	return c, nil
}

// page answers with what the HTTP port shows under /debug/.
func (q *Questions) page(who asker, name string) ([]*view.Body, error) {
	u, err := url.Parse("/debug/" + strings.TrimPrefix(name, "/debug/"))
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "%q is no debug page: %v", name, err)
	}
	pages := q.server.all()
	pages = append(pages, list(pages))
	i := slices.IndexFunc(pages, func(p Page) bool { return p.Path == u.Path })
	switch {
	case i < 0:
		return nil, status.Errorf(codes.NotFound, "there is no debug page %q; the page list lists them", name)
	case !who.system && !pages[i].Own:
		return nil, status.Errorf(codes.PermissionDenied, "the debug page %q is for callers of namespace %s", name, q.naming.Operators)
	}
	w := &answer{header: http.Header{}}
	q.server.cfg.show(pages[i], who, w, &http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}})
	text := strings.TrimSpace(w.body.String())
	switch w.code {
	case 0, http.StatusOK:
		return []*view.Body{view.NewBody(q.tools.Pages, name, w.body.Bytes(), 0)}, nil
	case http.StatusNotFound:
		return nil, status.Error(codes.NotFound, text)
	}
	return nil, status.Error(codes.InvalidArgument, text)
}

func notConnected(node string) string {
	return fmt.Sprintf("proxy %q is not connected, or not of a namespace that the caller may see", node)
}

// answer is a page that goes into a resource.
type answer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(code int) { a.code = code }

func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }
