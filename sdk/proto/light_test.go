package proto

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// message is what every generated type has.
type message interface {
	Size() int
	AppendTo([]byte) []byte
	Unmarshal([]byte) error
}

// roots hold all other messages of the contract.
var roots = map[protoreflect.FullName]func() message{
	"coxswain.v1.FromCore":   func() message { return new(FromCore) },
	"coxswain.v1.FromPlugin": func() message { return new(FromPlugin) },
	"coxswain.v1.Service":    func() message { return new(Service) },
	"coxswain.v1.Endpoint":   func() message { return new(Endpoint) },
	"coxswain.v1.Workload":   func() message { return new(Workload) },
	"coxswain.v1.Namespace":  func() message { return new(Namespace) },
}

// TestLightMessagesAreProtobuf compares our encoders with the protobuf runtime: what one writes the
// other reads, with random content in every field.
func TestLightMessagesAreProtobuf(t *testing.T) {
	files := descriptors(t)
	for name, fresh := range roots {
		d, err := files.FindDescriptorByName(name)
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(300) {
			m := fresh()
			fill(reflect.ValueOf(m).Elem(), rand.New(rand.NewPCG(seed, 3)), 0)
			ours := m.AppendTo(nil)
			if m.Size() != len(ours) {
				t.Fatalf("%s: Size is %d, AppendTo added %d", name, m.Size(), len(ours))
			}
			dynamic := dynamicpb.NewMessage(d.(protoreflect.MessageDescriptor))
			if err := proto.Unmarshal(ours, dynamic); err != nil {
				t.Fatalf("%s: the runtime can't read it: %v", name, err)
			}
			if hidden := unknown(dynamic); hidden != "" {
				t.Fatalf("%s: the runtime doesn't know %s", name, hidden)
			}
			theirs, err := proto.Marshal(dynamic)
			if err != nil {
				t.Fatal(err)
			}
			if len(theirs) != len(ours) {
				t.Fatalf("%s: %d bytes, the runtime's have %d", name, len(ours), len(theirs))
			}
			back := fresh()
			if err := back.Unmarshal(theirs); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if diff := cmp.Diff(m, back); diff != "" {
				t.Fatalf("%s: %s", name, diff)
			}
			if again := m.AppendTo(nil); string(again) != string(ours) {
				t.Fatalf("%s: two encodings differ", name)
			}
		}
	}
}

// TestTables runs this package's tests with the codec of WASM modules.
func TestTables(t *testing.T) {
	again := exec.Command("go", "test", "-tags", "smallcodec", "-run", "^TestLight", ".")
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func descriptors(t *testing.T) interface {
	FindDescriptorByName(protoreflect.FullName) (protoreflect.Descriptor, error)
} {
	t.Helper()
	b, err := os.ReadFile("testdata/contract.binpb")
	if err != nil {
		t.Fatal(err)
	}
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(b, &set); err != nil {
		t.Fatal(err)
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// fill gives random content to a struct. Of FromCore and FromPlugin, which stand for a oneof, one
// member is set.
func fill(v reflect.Value, r *rand.Rand, depth int) {
	only := -1
	if n := v.Type().Name(); n == "FromCore" || n == "FromPlugin" {
		only = r.IntN(v.NumField())
	}
	for i := range v.NumField() {
		if only >= 0 && i != only || only < 0 && r.IntN(3) == 0 {
			continue
		}
		set(v.Field(i), r, depth)
	}
}

func set(f reflect.Value, r *rand.Rand, depth int) {
	switch f.Kind() {
	case reflect.String:
		f.SetString(fmt.Sprint("s", r.IntN(1000)))
	case reflect.Bool:
		f.SetBool(true)
	case reflect.Uint32:
		f.SetUint(uint64(r.Uint32() >> r.IntN(32)))
	case reflect.Uint64:
		f.SetUint(r.Uint64() >> r.IntN(64))
	case reflect.Int32:
		f.SetInt(int64(r.IntN(4)))
	case reflect.Int64:
		f.SetInt(int64(r.Uint64()) >> r.IntN(64))
	case reflect.Float64:
		f.SetFloat(r.NormFloat64())
	case reflect.Pointer:
		f.Set(reflect.New(f.Type().Elem()))
		if depth < 5 {
			fill(f.Elem(), r, depth+1)
		}
	case reflect.Slice:
		if f.Type().Elem().Kind() == reflect.Uint8 {
			f.SetBytes(fmt.Appendf(nil, "b%d", r.IntN(1000)))
			return
		}
		for range 1 + r.IntN(3) {
			e := reflect.New(f.Type().Elem()).Elem()
			set(e, r, depth)
			f.Set(reflect.Append(f, e))
		}
	case reflect.Map:
		f.Set(reflect.MakeMap(f.Type()))
		for range 1 + r.IntN(3) {
			e := reflect.New(f.Type().Elem()).Elem()
			set(e, r, depth)
			f.SetMapIndex(reflect.ValueOf(fmt.Sprint("k", r.IntN(100))), e)
		}
	default:
		panic("no way to fill " + f.Kind().String())
	}
}

// unknown returns the name of a message that holds unknown fields; empty if none does.
func unknown(m protoreflect.Message) string {
	if len(m.GetUnknown()) > 0 {
		return string(m.Descriptor().FullName())
	}
	found := ""
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsList() && f.Message() != nil:
			for i := range v.List().Len() {
				if found == "" {
					found = unknown(v.List().Get(i).Message())
				}
			}
		case !f.IsMap() && !f.IsList() && f.Message() != nil:
			found = unknown(v.Message())
		}
		return found == ""
	})
	return found
}

// TestUnmarshalTakesAnything feeds cut and changed messages: an error or not, but no panic.
func TestUnmarshalTakesAnything(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for range 2000 {
		m := new(FromPlugin)
		fill(reflect.ValueOf(m).Elem(), r, 0)
		b := m.AppendTo(nil)
		for range 1 + r.IntN(4) {
			if len(b) > 0 {
				b[r.IntN(len(b))] ^= byte(1 << r.IntN(8))
			}
		}
		_ = new(FromPlugin).Unmarshal(b[:r.IntN(len(b)+1)])
	}
}
