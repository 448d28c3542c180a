// Package absent finds nil pointers in interfaces, for constructors: such an interface is not nil, and its methods panic
// with the first packet.
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
