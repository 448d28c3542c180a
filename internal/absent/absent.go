// Package absent finds what is not there behind an interface, for constructors: an interface that
// holds a nil pointer is not nil, and its methods panic when the first packet comes.
package absent

import "reflect"

// Is reports whether x is nil, or holds a nil pointer, func, map, slice or channel.
func Is(x any) bool {
	switch v := reflect.ValueOf(x); v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Slice, reflect.Chan:
		return v.IsNil()
	}
	return false
}
