package envoyrules

import (
	"fmt"
	"sync"
	"time"

	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
)

// inner are messages that Envoy judges wherever they stand, by their names.
var inner = map[protoreflect.FullName]func(proto.Message) error{
	(&matcher.RegexMatcher{}).ProtoReflect().Descriptor().FullName(): func(m proto.Message) error {
		if x, ok := m.(*matcher.RegexMatcher); ok {
			return regex(x.GetRegex())
		}
		return nil
	},
	(&durationpb.Duration{}).ProtoReflect().Descriptor().FullName(): func(m proto.Message) error {
		if d, ok := m.(*durationpb.Duration); ok {
			return duration(d)
		}
		return nil
	},
}

// MaxDuration is how long a duration must not be any more: Envoy counts it in nanoseconds.
const MaxDuration = 9223372036 * time.Second

func duration(d *durationpb.Duration) error {
	if d.GetSeconds() < 0 || d.GetNanos() < 0 || d.GetSeconds() >= int64(MaxDuration/time.Second) {
		return fmt.Errorf("a duration of %d seconds: it must be at least 0 and less than %d", d.GetSeconds(), int64(MaxDuration/time.Second))
	}
	return nil
}

func regex(expression string) error {
	if err := Regex(expression); err != nil {
		return fmt.Errorf("invalid regex %q: %w", tail(expression), err)
	}
	return nil
}

// leads are the fields of messages that lead to inner ones, by messages' names.
var leads sync.Map

// within checks what is judged wherever it stands in a message, up to messages that are wrapped.
func within(m protoreflect.Message) error {
	if check := inner[m.Descriptor().FullName()]; check != nil {
		return check(m.Interface())
	}
	for _, f := range leading(m.Descriptor()) {
		if !m.Has(f) {
			continue
		}
		if err := withinField(f, m.Get(f)); err != nil {
			return err
		}
	}
	return nil
}

// withinField is within for a field of a message; the error says where.
func withinField(f protoreflect.FieldDescriptor, v protoreflect.Value) (err error) {
	switch {
	case f.IsMap():
		v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			if err = within(v.Message()); err != nil {
				err = fmt.Errorf("%s[%q]: %w", f.Name(), k.String(), err)
			}
			return err == nil
		})
	case f.IsList():
		for i := range v.List().Len() {
			if err := within(v.List().Get(i).Message()); err != nil {
				return fmt.Errorf("%s[%d]: %w", f.Name(), i, err)
			}
		}
	default:
		if err = within(v.Message()); err != nil {
			err = fmt.Errorf("%s: %w", f.Name(), err)
		}
	}
	return err
}

// leading are the fields of a message from which inner ones can be reached.
func leading(d protoreflect.MessageDescriptor) []protoreflect.FieldDescriptor {
	if known, ok := leads.Load(d.FullName()); ok {
		return known.([]protoreflect.FieldDescriptor)
	}
	var out []protoreflect.FieldDescriptor
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		to := f.Message()
		if f.IsMap() {
			to = f.MapValue().Message()
		}
		if to != nil && reaches(to, map[protoreflect.FullName]bool{}) {
			out = append(out, f)
		}
	}
	leads.Store(d.FullName(), out)
	return out
}

// reaches reports whether an inner message can be below one, but for messages that were seen.
func reaches(d protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool) bool {
	if inner[d.FullName()] != nil {
		return true
	}
	if seen[d.FullName()] {
		return false
	}
	seen[d.FullName()] = true
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		to := f.Message()
		if f.IsMap() {
			to = f.MapValue().Message()
		}
		if to != nil && reaches(to, seen) {
			return true
		}
	}
	return false
}
