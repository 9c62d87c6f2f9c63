package render

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"
	"time"

	"github.com/Masterminds/sprig/v3"
	mesh "istio.io/api/mesh/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Data is what templates are run with; the names are Istio's, whose templates count on them.
type Data struct {
	TypeMeta                 metav1.TypeMeta
	DeploymentMeta           types.NamespacedName
	ObjectMeta               metav1.ObjectMeta
	Spec                     corev1.PodSpec
	ProxyConfig              *mesh.ProxyConfig
	MeshConfig               *mesh.MeshConfig
	Values                   map[string]any
	Revision                 string
	NativeSidecars           bool
	ProxyImage               string
	ProxyInitImage           string
	ProxyUID                 int64
	ProxyGID                 int64
	InboundTrafficPolicyMode string
	CompliancePolicy         string
}

// overlay makes what is laid over a pod; what was read before is among those that are kept.
type overlay interface {
	over(d *Data, kept sheets) (*sheet, error)
}

// Bounds of a template's run: how long it may take, how much it may write, how long a list or a
// repetition that a function makes may be, how many may run at once, and for how long others wait
// to.
const (
	mostTime    = 2 * time.Second
	mostWait    = 10 * time.Second
	mostOutput  = 1 << 20
	mostItems   = 100_000
	mostRunning = 16
)

var errSlow = fmt.Errorf("the template ran for longer than %s", mostTime)

// text is a template of text.
type text struct {
	of      *template.Template
	allowed Names
	// idle are runners that nobody uses.
	idle sync.Pool
}

// running are the runs of templates: one that doesn't end, in a function, keeps its place.
var running = make(chan struct{}, mostRunning)

// tick is the name of a function that is put into each loop, to end it when the time is over.
const tick = "__tick"

// compile reads a template.
func compile(name, source string, allowed Names) (overlay, error) {
	t, err := template.New(name).Funcs(functions(allowed)).
		Funcs(template.FuncMap{tick: func() (string, error) { return "", nil }, inPlace: oneLine}).Parse(source)
	if err != nil {
		return nil, err
	}
	call := template.Must(template.New("").Funcs(template.FuncMap{tick: func() string { return "" }}).Parse("{{" + tick + "}}")).Root.Nodes[0]
	for _, part := range t.Templates() {
		if part.Tree != nil {
			watch(part.Root, call)
			hold(part.Root)
			part.Root.Nodes = append([]parse.Node{call}, part.Root.Nodes...)
		}
	}
	return &text{of: t, allowed: allowed}, nil
}

// watch puts a call at the start of each loop's body.
func watch(list *parse.ListNode, call parse.Node) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.RangeNode:
			watch(n.List, call)
			n.List.Nodes = append([]parse.Node{call}, n.List.Nodes...)
			watch(n.ElseList, call)
		case *parse.IfNode:
			watch(n.List, call)
			watch(n.ElseList, call)
		case *parse.WithNode:
			watch(n.List, call)
			watch(n.ElseList, call)
		}
	}
}

// over runs the template, and reads what it writes.
func (t *text) over(d *Data, kept sheets) (*sheet, error) {
	out, err := t.write(d)
	if err != nil {
		return nil, err
	}
	return kept.read(out)
}

// write runs the template, once it has a place. What is still at it when the time is over is left
// alone.
func (t *text) write(d *Data) ([]byte, error) {
	end := time.NewTimer(mostWait)
	defer end.Stop()
	select {
	case running <- struct{}{}:
	case <-end.C:
		return nil, fmt.Errorf("%d templates run already; try again", mostRunning)
	}
	end.Reset(mostTime)
	type result struct {
		out []byte
		err error
	}
	done := make(chan result, 1)
	go func() {
		defer func() { <-running }()
		out, err := t.run(d, time.Now().Add(mostTime))
		done <- result{out, err}
	}()
	select {
	case r := <-done:
		return r.out, r.err
	case <-end.C:
		return nil, errSlow
	}
}

// runner runs a template, once at a time, until a time.
type runner struct {
	of    *template.Template
	until time.Time
}

func (t *text) runner() (*runner, error) {
	if r, ok := t.idle.Get().(*runner); ok {
		return r, nil
	}
	of, err := t.of.Clone()
	if err != nil {
		return nil, err
	}
	r := &runner{}
	r.of = of.Funcs(template.FuncMap{tick: func() (string, error) {
		if time.Now().After(r.until) {
			return "", errSlow
		}
		return "", nil
	}})
	return r, nil
}

func (t *text) run(d *Data, until time.Time) ([]byte, error) {
	r, err := t.runner()
	if err != nil {
		return nil, err
	}
	r.until = until
	out := &bounded{until: until}
	err = r.of.Execute(out, d)
	t.idle.Put(r)
	if err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// bounded takes so many bytes, and for so long.
type bounded struct {
	bytes.Buffer
	until time.Time
}

func (b *bounded) Write(p []byte) (int, error) {
	switch {
	case b.Len()+len(p) > mostOutput:
		return 0, fmt.Errorf("the template writes more than %d bytes", mostOutput)
	case time.Now().After(b.until):
		return 0, errSlow
	}
	return b.Buffer.Write(p)
}

var errMany = fmt.Errorf("more than %d of something are asked for", mostItems)

// functions are sprig's, with those of Istio's templates over them. What reads the process's
// surroundings sees what is allowed.
func functions(allowed Names) template.FuncMap {
	all := template.FuncMap(sprig.TxtFuncMap())
	maps.Copy(all, template.FuncMap(istio))
	variable := func(name string) string {
		if slices.Contains(allowed.Env, name) {
			return os.Getenv(name)
		}
		return ""
	}
	all["env"] = func(name string, usual ...string) string {
		if v := variable(name); v != "" || len(usual) == 0 {
			return v
		}
		return usual[0]
	}
	all["expandenv"] = func(s string) string { return os.Expand(s, variable) }
	all["getHostByName"] = func(name string) string {
		if !slices.Contains(allowed.Hosts, name) {
			return ""
		}
		addresses, err := net.LookupHost(name)
		if err != nil || len(addresses) == 0 {
			return ""
		}
		return addresses[0]
	}
	for _, name := range []string{
		"until", "untilStep", "seq", "repeat", "randAlphaNum", "randAlpha", "randAscii", "randNumeric", "randBytes",
		"wrap", "wrapWith", "nindent",
	} {
		all[name] = modest(all[name])
	}
	return all
}

// modest makes a function refuse large numbers: what they ask for is made at once, before anybody
// could end it.
func modest(f any) any {
	of := reflect.ValueOf(f)
	t := of.Type()
	var in []reflect.Type
	for i := range t.NumIn() {
		in = append(in, t.In(i))
	}
	out := []reflect.Type{t.Out(0), reflect.TypeFor[error]()}
	made := reflect.MakeFunc(reflect.FuncOf(in, out, t.IsVariadic()), func(args []reflect.Value) []reflect.Value {
		if slices.ContainsFunc(args, large) {
			return []reflect.Value{reflect.Zero(t.Out(0)), reflect.ValueOf(&errMany).Elem()}
		}
		result := of.Call
		if t.IsVariadic() {
			result = of.CallSlice
		}
		r := result(args)
		if len(r) == 1 {
			return []reflect.Value{r[0], reflect.Zero(reflect.TypeFor[error]())}
		}
		return r[:2]
	})
	return made.Interface()
}

// large reports whether a value is a number, or a list with one, that is too large.
func large(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Int, reflect.Int64, reflect.Int32:
		return v.Int() > mostItems || v.Int() < -mostItems
	case reflect.Slice:
		for i := range v.Len() {
			if large(v.Index(i)) {
				return true
			}
		}
	}
	return false
}

// resolve returns the names of the templates that a pod asks for, or the usual ones.
func (s *Settings) resolve(asked string, ok bool) (names []string) {
	list := s.config.DefaultTemplates
	if ok {
		list = strings.Split(asked, ",")
	}
	for _, n := range list {
		n = strings.TrimSpace(n)
		if of, alias := s.config.Aliases[n]; alias {
			names = append(names, of...)
			continue
		}
		names = append(names, n)
	}
	return names
}
