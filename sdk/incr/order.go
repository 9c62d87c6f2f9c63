package incr

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"unsafe"
)

// orderOf returns the order of a key type: its own Compare method if it has one, otherwise the
// order of its fields, one after another. The order of members must not depend on history, so that
// every key needs one.
func orderOf[K comparable](label string) comparer {
	var zero K
	if _, ok := any(zero).(interface{ Compare(K) int }); ok {
		return func(a, b unsafe.Pointer) int { return any((*K)(a)).(interface{ Compare(K) int }).Compare(*(*K)(b)) }
	}
	compare := orderByType(reflect.TypeFor[K]())
	if compare == nil {
		panic(fmt.Sprintf(
			"incr: %s: keys of type %T have no order: use strings, numbers, booleans, arrays and structs of them, or give the type a method Compare(%T) int",
			label, zero, zero,
		))
	}
	return compare
}

type comparer func(a, b unsafe.Pointer) int

func orderByType(t reflect.Type) comparer {
	switch t.Kind() {
	case reflect.Struct:
		return orderByFields(t)
	case reflect.Array:
		return orderByElements(t)
	case reflect.Bool:
		return orderAs[uint8]()
	case reflect.String:
		return func(a, b unsafe.Pointer) int { return strings.Compare(*(*string)(a), *(*string)(b)) }
	case reflect.Float32:
		return orderAs[float32]()
	case reflect.Float64:
		return orderAs[float64]()
	}
	return orderOfInteger(t.Kind())
}

func orderOfInteger(k reflect.Kind) comparer {
	switch k {
	case reflect.Int:
		return orderAs[int]()
	case reflect.Int8:
		return orderAs[int8]()
	case reflect.Int16:
		return orderAs[int16]()
	case reflect.Int32:
		return orderAs[int32]()
	case reflect.Int64:
		return orderAs[int64]()
	case reflect.Uint, reflect.Uintptr:
		return orderAs[uint]()
	case reflect.Uint8:
		return orderAs[uint8]()
	case reflect.Uint16:
		return orderAs[uint16]()
	case reflect.Uint32:
		return orderAs[uint32]()
	case reflect.Uint64:
		return orderAs[uint64]()
	}
	return nil
}

func orderAs[T cmp.Ordered]() comparer {
	return func(a, b unsafe.Pointer) int { return cmp.Compare(*(*T)(a), *(*T)(b)) }
}

func orderByFields(t reflect.Type) comparer {
	type part struct {
		offset  uintptr
		compare comparer
	}
	var parts []part
	for i := range t.NumField() {
		compare := orderByType(t.Field(i).Type)
		if compare == nil {
			return nil
		}
		parts = append(parts, part{t.Field(i).Offset, compare})
	}
	return func(a, b unsafe.Pointer) int {
		for _, p := range parts {
			if d := p.compare(unsafe.Add(a, p.offset), unsafe.Add(b, p.offset)); d != 0 {
				return d
			}
		}
		return 0
	}
}

func orderByElements(t reflect.Type) comparer {
	compare, size := orderByType(t.Elem()), t.Elem().Size()
	if compare == nil {
		return nil
	}
	return func(a, b unsafe.Pointer) int {
		for i := range t.Len() {
			if d := compare(unsafe.Add(a, uintptr(i)*size), unsafe.Add(b, uintptr(i)*size)); d != 0 {
				return d
			}
		}
		return 0
	}
}
