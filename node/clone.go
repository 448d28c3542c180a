package node

import "reflect"

// clone returns a copy of a configuration that shares nothing with it that can be changed.
func clone(c *Config) *Config {
	return copied(reflect.ValueOf(c)).Interface().(*Config)
}

// copied copies what is in pointers, slices, maps and structs with exported fields alone, at any
// depth. Other structs, such as a netip.Addr, and functions are values.
func copied(v reflect.Value) reflect.Value {
	to := reflect.New(v.Type()).Elem()
	to.Set(v)
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			to.Set(reflect.New(v.Type().Elem()))
			to.Elem().Set(copied(v.Elem()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				to.Field(i).Set(copied(v.Field(i)))
			}
		}
	case reflect.Slice:
		if !v.IsNil() {
			to.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				to.Index(i).Set(copied(v.Index(i)))
			}
		}
	case reflect.Map:
		if !v.IsNil() {
			to.Set(reflect.MakeMap(v.Type()))
			for k, x := range v.Seq2() {
				to.SetMapIndex(k, copied(x))
			}
		}
	}
	return to
}
