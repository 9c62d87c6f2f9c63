package nacos

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// record is an instance as it is written.
type record map[string]any

// at is an instance at 10.0.0.N.
func at(n int, with ...func(record)) record {
	r := record{
		"ip": fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255), "port": 8080, "weight": 1.0, "healthy": true, "enabled": true, "ephemeral": true,
		"clusterName": "DEFAULT", "serviceName": "DEFAULT_GROUP@@any", "metadata": map[string]string{},
	}
	for _, w := range with {
		w(r)
	}
	return r
}

func with(key string, value any) func(record) { return func(r record) { r[key] = value } }

// twin answers as Nacos does to what the plugin asks.
type twin struct {
	address string
	server  *grpc.Server
	web     *httptest.Server

	mu       sync.Mutex
	services map[key][]record
	// known are connections that were set up, with what each subscribed to.
	known map[string]*known
	// instead answers in its place, if it returns a payload, or an error that is one of gRPC.
	instead func(p *payload, asked map[string]any) (*payload, error)
	// apart is the same, and may take its time: mu isn't held.
	apart func(ctx context.Context, p *payload, asked map[string]any) (*payload, error)
	asked []string
	// passwords are those that count, empty: nobody is asked; valid is the token that does.
	password, valid string
	logins          int
	// refuses are services and groups that may not be read.
	refuses map[string]bool
	// silent: it tells nothing unasked.
	silent bool
	pushes int
	acks   chan string
}

type known struct {
	namespace string
	wants     map[key]bool
	send      func(*payload) error
	// end ends the stream.
	end context.CancelFunc
}

func newTwin(t testing.TB) *twin {
	t.Helper()
	w := &twin{services: map[key][]record{}, known: map[string]*known{}, refuses: map[string]bool{}, acks: make(chan string, 10000)}
	w.serve(t, wait.Address(t)) // which it may leave, and take again
	return w
}

// serve serves gRPC at an address, and HTTP for logins.
func (w *twin) serve(t testing.TB, address string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	w.address = l.Addr().String()
	s := grpc.NewServer(grpc.ForceServerCodec(codec{}), grpc.UnknownServiceHandler(w.handle), grpc.MaxSendMsgSize(1<<30))
	w.server = s
	var ended sync.WaitGroup
	ended.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() { s.Stop(); ended.Wait() })
	if w.web == nil {
		w.web = httptest.NewServer(http.HandlerFunc(w.enter))
		t.Cleanup(w.web.Close)
	}
}

func (w *twin) change(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
}

func named(service string) key { return key{"public", "DEFAULT_GROUP", service} }

// set makes these all that a service has, and tells who wants to know.
func (w *twin) set(service string, all ...record) { w.setAt(named(service), all...) }

func (w *twin) setAt(k key, all ...record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.services[k] = all
	w.push(k)
}

// push has mu.
func (w *twin) push(k key) {
	if w.silent {
		return
	}
	for _, c := range w.known {
		if c.wants[k] && c.namespace == k.namespace {
			w.pushes++
			_ = c.send(encode(notify, map[string]any{"requestId": fmt.Sprint(w.pushes), "module": "naming", "serviceInfo": w.info(k)}))
		}
	}
}

// forget drops a service, as Nacos does with one that has been empty for a while.
func (w *twin) forget(services ...string) {
	w.change(func() {
		for _, s := range services {
			delete(w.services, named(s))
		}
	})
}

// restart has it know nothing but these any more, and ends all connections.
func (w *twin) restart(services map[string][]record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.services = map[key][]record{}
	for s, all := range services {
		w.services[named(s)] = all
	}
	w.hangUp()
}

// hangUp has mu.
func (w *twin) hangUp() {
	for id, c := range w.known {
		delete(w.known, id)
		c.end()
	}
}

func (w *twin) info(k key) map[string]any {
	return map[string]any{
		"name": k.name, "groupName": k.group, "clusters": "", "cacheMillis": 10000,
		"hosts": append([]record{}, w.services[k]...), "lastRefTime": 1, "checksum": "", "allIPs": false,
		"reachProtectionThreshold": false, "valid": true,
	}
}

func encode(kind string, body any) *payload {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return &payload{kind: kind, body: text}
}

func fails(code int, text string) *payload {
	return encode("ErrorResponse", map[string]any{"resultCode": 500, "errorCode": code, "message": text, "success": false})
}

// peerOf is the address that a connection comes from.
func peerOf(ctx context.Context) string {
	p, _ := peer.FromContext(ctx)
	return p.Addr.String()
}

func (w *twin) handle(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	from := peerOf(stream.Context())
	if method == streamMethod {
		return w.talk(from, stream)
	}
	var p payload
	if err := stream.RecvMsg(&p); err != nil {
		return err
	}
	got, err := w.lies(stream.Context(), &p)
	if got == nil && err == nil {
		got, err = w.answer(from, &p)
	}
	if err != nil {
		return err
	}
	return stream.SendMsg(got)
}

// lies answers as apart does, where there is one.
func (w *twin) lies(ctx context.Context, p *payload) (*payload, error) {
	var asked map[string]any
	var apart func(context.Context, *payload, map[string]any) (*payload, error)
	w.change(func() { apart = w.apart })
	if apart == nil || json.Unmarshal(p.body, &asked) != nil {
		return nil, nil
	}
	got, err := apart(ctx, p, asked)
	if got != nil || err != nil {
		w.change(func() { w.asked = append(w.asked, p.kind) })
	}
	return got, err
}

// talk is the stream of a connection.
func (w *twin) talk(from string, stream grpc.ServerStream) error {
	ctx, end := context.WithCancel(stream.Context())
	defer end()
	var p payload
	if err := stream.RecvMsg(&p); err != nil {
		return err
	}
	if p.kind != setup {
		return status.Error(codes.Internal, "no setup")
	}
	var said struct{ Tenant string }
	if err := json.Unmarshal(p.body, &said); err != nil {
		return err
	}
	var sending sync.Mutex
	c := &known{namespace: said.Tenant, wants: map[key]bool{}, end: end, send: func(p *payload) error {
		sending.Lock()
		defer sending.Unlock()
		return stream.SendMsg(p)
	}}
	w.change(func() { w.known[from] = c })
	go func() {
		for {
			var p payload
			if err := stream.RecvMsg(&p); err != nil {
				end()
				return
			}
			select {
			case w.acks <- p.kind:
			default:
			}
		}
	}()
	<-ctx.Done()
	w.change(func() {
		if w.known[from] == c {
			delete(w.known, from)
		}
	})
	return nil
}

func (w *twin) answer(from string, p *payload) (*payload, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var asked map[string]any
	if err := json.Unmarshal(p.body, &asked); err != nil {
		return fails(502, err.Error()), nil
	}
	text := func(key string) string { s, _ := asked[key].(string); return s }
	w.asked = append(w.asked, p.kind)
	if w.instead != nil {
		if out, err := w.instead(p, asked); out != nil || err != nil {
			return out, err
		}
	}
	success := map[string]any{"resultCode": 200, "errorCode": 0, "success": true}
	if p.kind == serverCheck {
		return encode("ServerCheckResponse", success), nil
	}
	c := w.known[from]
	if c == nil {
		return fails(301, "Connection is unregistered."), nil
	}
	k := key{text("namespace"), text("groupName"), text("serviceName")}
	if p.kind != healthCheck && w.password != "" && p.headers["accessToken"] != w.valid || w.refuses[k.group+"/"+k.name] {
		return fails(403, "user not found!"), nil
	}
	switch p.kind {
	case healthCheck:
		return encode("HealthCheckResponse", success), nil
	case serviceList:
		var all []string
		for _, s := range slices.SortedFunc(maps.Keys(w.services), func(a, b key) int { return strings.Compare(a.name, b.name) }) {
			if s.namespace == k.namespace && s.group == k.group {
				all = append(all, s.name)
			}
		}
		page, size := int(asked["pageNo"].(float64)), int(asked["pageSize"].(float64))
		success["count"], success["serviceNames"] = len(all), all[min((page-1)*size, len(all)):min(page*size, len(all))]
		return encode("ServiceListResponse", success), nil
	case subscribe:
		if c.wants[k] = asked["subscribe"] == true; !c.wants[k] {
			delete(c.wants, k)
		}
		success["serviceInfo"] = w.info(k)
		return encode("SubscribeServiceResponse", success), nil
	}
	return fails(302, "RequestHandler Not Found"), nil
}

// enter answers to logins.
func (w *twin) enter(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.URL.Path != "/nacos/v1/auth/login" { // as Nacos 2
		http.NotFound(out, r)
		return
	}
	if r.FormValue("username") != "mesh" || r.FormValue("password") != w.password {
		out.WriteHeader(http.StatusForbidden)
		return
	}
	w.logins++
	w.valid = fmt.Sprintf("token-%d", w.logins)
	fmt.Fprintf(out, `{"accessToken": %q, "tokenTtl": 18000}`, w.valid)
}

// count returns how often something was asked for.
func (w *twin) count(kind string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.asked {
		if kind == "" || a == kind {
			n++
		}
	}
	return n
}

// ports are the twin's as a config can say them: its HTTP port, and how far gRPC's is from it.
func (w *twin) ports(t testing.TB) (http string, offset int) {
	t.Helper()
	u, err := url.Parse(w.web.URL)
	if err != nil {
		t.Fatal(err)
	}
	var a, b int
	_, port, _ := net.SplitHostPort(w.address)
	if _, err := fmt.Sscan(u.Port(), &a); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(port, &b); err != nil {
		t.Fatal(err)
	}
	return u.Host, b - a
}
