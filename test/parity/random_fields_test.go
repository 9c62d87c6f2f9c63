package parity

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	mesh "istio.io/api/mesh/v1alpha1"
)

// gen makes random values out of the descriptors of Istio's messages. What a field may well hold is
// in the tables below; others hold something of their type.
type gen struct {
	r *rand.Rand
	// density is how likely a field is set.
	density float64
}

func newGen(seed, n uint64) *gen {
	g := &gen{r: rand.New(rand.NewPCG(seed, n))}
	g.density = 0.1 + 0.35*g.r.Float64()
	return g
}

func (g *gen) chance(p float64) bool { return g.r.Float64() < p }

func ordered[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// fill sets fields of a message; depth is how deep it lies.
func (g *gen) fill(m protoreflect.Message, depth int) {
	d := m.Descriptor()
	for i := range d.Oneofs().Len() {
		o := d.Oneofs().Get(i)
		if !needed[string(o.FullName())[len("istio."):]] && !g.chance(g.density) {
			continue
		}
		var fields []protoreflect.FieldDescriptor
		for j := range o.Fields().Len() {
			if f := o.Fields().Get(j); !never(f) {
				fields = append(fields, f)
			}
		}
		if len(fields) > 0 {
			g.set(m, pick(g.r, fields), depth)
		}
	}
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		if f.ContainingOneof() != nil || never(f) {
			continue
		}
		if p, ok := likely[key(f)]; ok && g.chance(p) || !ok && g.chance(g.density) {
			g.set(m, f, depth)
		}
	}
	if mend := mends[strings.TrimPrefix(string(d.FullName()), "istio.")]; mend != nil {
		mend(g, m)
	}
}

func key(f protoreflect.FieldDescriptor) string {
	return string(f.ContainingMessage().Name()) + "." + string(f.Name())
}

func never(f protoreflect.FieldDescriptor) bool {
	p, ok := likely[key(f)]
	return ok && p == 0
}

func (g *gen) set(m protoreflect.Message, f protoreflect.FieldDescriptor, depth int) {
	switch {
	case f.IsMap():
		n := 1 + g.r.IntN(2)
		for range n {
			k := protoreflect.ValueOfString(pick(g.r, keysOf(f)))
			if f.MapKey().Kind() == protoreflect.Uint32Kind {
				k = protoreflect.ValueOfUint32(uint32(g.number(f)))
			}
			v := m.NewField(f).Map().NewValue()
			if f.MapValue().Message() != nil {
				g.message(v.Message(), depth)
			} else {
				v = g.scalar(f, f.MapValue())
			}
			m.Mutable(f).Map().Set(k.MapKey(), v)
		}
	case f.IsList():
		n := 1
		for n < 3 && g.chance(0.35) {
			n++
		}
		for range n {
			list := m.Mutable(f).List()
			if f.Message() != nil {
				v := list.NewElement()
				g.message(v.Message(), depth)
				list.Append(v)
				continue
			}
			v := g.scalar(f, f)
			if !has(list, v) {
				list.Append(v)
			}
		}
	case f.Message() != nil:
		g.messageOf(m.Mutable(f).Message(), f, depth)
	default:
		m.Set(f, g.scalar(f, f))
	}
}

func has(list protoreflect.List, v protoreflect.Value) bool {
	for i := range list.Len() {
		if list.Get(i).Equal(v) {
			return true
		}
	}
	return false
}

func keysOf(f protoreflect.FieldDescriptor) []string {
	if list := texts[key(f)+".key"]; list != nil {
		return list
	}
	if list := texts["."+string(f.Name())+".key"]; list != nil {
		return list
	}
	return []string{"x-a", "x-b"}
}

func (g *gen) message(m protoreflect.Message, depth int) { g.messageOf(m, nil, depth) }

func (g *gen) messageOf(m protoreflect.Message, f protoreflect.FieldDescriptor, depth int) {
	switch d := m.Descriptor(); d.FullName() {
	case "google.protobuf.Duration":
		list := durations
		if f != nil && times[key(f)] != nil {
			list = times[key(f)]
		}
		l, err := time.ParseDuration(pick(g.r, list))
		if err != nil {
			panic(err)
		}
		proto.Merge(m.Interface(), durationpb.New(l))
	case "google.protobuf.Struct":
		s, err := structpb.NewStruct(pick(g.r, structs))
		if err != nil {
			panic(err)
		}
		proto.Merge(m.Interface(), s)
	case "google.protobuf.BoolValue", "google.protobuf.UInt32Value", "google.protobuf.Int32Value", "google.protobuf.Int64Value", "google.protobuf.DoubleValue":
		at := d.Fields().ByNumber(1)
		if f == nil {
			f = at
		}
		if v := g.scalar(f, at); !g.chance(0.1) {
			m.Set(at, v)
		}
	default:
		if depth > 8 {
			return
		}
		g.fill(m, depth+1)
	}
}

// scalar is a value of kind of, for a field.
func (g *gen) scalar(f, of protoreflect.FieldDescriptor) protoreflect.Value {
	switch of.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(g.chance(0.6))
	case protoreflect.EnumKind:
		values := of.Enum().Values()
		return protoreflect.ValueOfEnum(values.Get(g.r.IntN(values.Len())).Number())
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(g.number(f)))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(int64(g.number(f)))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(g.number(f)))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(uint64(g.number(f)))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(pick(g.r, []float64{0, 0.5, 1, 12.5, 50, 99.99, 100}))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte("bytes"))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(g.text(f))
	}
	panic(of.Kind())
}

func (g *gen) number(f protoreflect.FieldDescriptor) int {
	for _, k := range []string{key(f), "." + string(f.Name())} {
		if list := numbers[k]; list != nil {
			return pick(g.r, list)
		}
	}
	return pick(g.r, []int{0, 1, 2, 5, 10, 100, 1024})
}

func (g *gen) text(f protoreflect.FieldDescriptor) string {
	for _, k := range []string{key(f), "." + string(f.Name())} {
		if list := texts[k]; list != nil {
			return pick(g.r, list)
		}
	}
	return pick(g.r, []string{"x", "y", "a-b"})
}

// spec is a message as JSON has it.
func spec(m proto.Message) map[string]any {
	b, err := protojson.Marshal(m)
	if err != nil {
		panic(err)
	}
	var out map[string]any
	if err := json.Unmarshal(b, &out); err != nil {
		panic(err)
	}
	return out
}

// proxyConfig is what an agent or the mesh says to proxies.
func (g *gen) proxyConfig() map[string]any {
	var c mesh.ProxyConfig
	g.fill(c.ProtoReflect(), 0)
	return spec(&c)
}

// meshConfig is random settings of the mesh, with the extension providers that others name.
// takeable removes what istiod refuses of settings: it would have its defaults, or what it had
// before.
func takeable(c *mesh.MeshConfig) {
	if c.MeshMTLS != nil {
		c.MeshMTLS.EcdhCurves = nil
	}
	if p := c.DefaultTrafficPolicy; p.GetConnectionPool() != nil && proto.Size(p.ConnectionPool) == 0 {
		p.ConnectionPool = nil
	}
	if l := c.LocalityLbSetting; len(l.GetFailover()) > 0 {
		l.FailoverPriority = nil
	}
}

func (g *gen) meshConfig() map[string]any {
	var c mesh.MeshConfig
	was := g.density
	g.density = 0.03 + 0.2*g.r.Float64()
	if g.chance(0.35) {
		g.fill(c.ProtoReflect(), 0)
		takeable(&c)
	}
	g.density = 0.3
	c.ExtensionProviders = nil
	for _, name := range providers {
		p := &mesh.MeshConfig_ExtensionProvider{Name: name}
		m := p.ProtoReflect()
		g.set(m, m.Descriptor().Fields().ByName(protoreflect.Name(strings.ReplaceAll(strings.TrimSuffix(name, "2"), "-", "_"))), 1)
		c.ExtensionProviders = append(c.ExtensionProviders, p)
	}
	g.density = was
	return spec(&c)
}

// providers are named as their kind.
var providers = []string{"envoy-ext-authz-http", "envoy-ext-authz-grpc", "zipkin", "datadog", "skywalking", "opentelemetry", "opentelemetry2", "prometheus",
	"envoy-file-access-log", "envoy-file-access-log2", "envoy-http-als", "envoy-tcp-als", "envoy-otel-als"}
