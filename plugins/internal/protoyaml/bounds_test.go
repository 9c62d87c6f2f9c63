package protoyaml

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Whole numbers are taken as far as their field holds them, and refused beyond: never cut to what
// fits.
func TestBoundsOfNumbers(t *testing.T) {
	for _, c := range []struct {
		yaml string
		into proto.Message
		want proto.Message // nil: refused
	}{
		{"4294967295", &wrapperspb.UInt32Value{}, wrapperspb.UInt32(4294967295)},
		{"4294967296", &wrapperspb.UInt32Value{}, nil},
		{"4294967376", &wrapperspb.UInt32Value{}, nil}, // 80 in 32 bits
		{`"4294967376"`, &wrapperspb.UInt32Value{}, nil},
		{"0", &wrapperspb.UInt32Value{}, wrapperspb.UInt32(0)},
		{"-1", &wrapperspb.UInt32Value{}, nil},
		{"2147483647", &wrapperspb.Int32Value{}, wrapperspb.Int32(2147483647)},
		{"2147483648", &wrapperspb.Int32Value{}, nil},
		{"-2147483648", &wrapperspb.Int32Value{}, wrapperspb.Int32(-2147483648)},
		{"-2147483649", &wrapperspb.Int32Value{}, nil},
		{"-4294967216", &wrapperspb.Int32Value{}, nil},
		{"18446744073709551615", &wrapperspb.UInt64Value{}, wrapperspb.UInt64(18446744073709551615)},
		{"18446744073709551616", &wrapperspb.UInt64Value{}, nil},
		{"9223372036854775807", &wrapperspb.Int64Value{}, wrapperspb.Int64(9223372036854775807)},
		{"9223372036854775808", &wrapperspb.Int64Value{}, nil},
		{"-9223372036854775808", &wrapperspb.Int64Value{}, wrapperspb.Int64(-9223372036854775808)},
	} {
		faults := Decode(root(t, c.yaml), "", c.into)
		switch {
		case c.want == nil:
			if len(faults) != 1 || !strings.Contains(faults[0].Error(), "expected a whole number from ") {
				t.Errorf("%s into %T: %v, %v", c.yaml, c.into, c.into, faults)
			}
		case len(faults) > 0 || !proto.Equal(c.into, c.want):
			t.Errorf("%s into %T: %v, %v", c.yaml, c.into, c.into, faults)
		}
	}
}
