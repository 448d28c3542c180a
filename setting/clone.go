package setting

import "reflect"

// Clone returns a deep copy of settings. It copies pointers, slices, maps, arrays, exported fields and embedded structs.
// Other fields, interfaces and functions are shared.
func Clone[T any](x T) T {
	unshare(reflect.ValueOf(&x).Elem())
	return x
}

// unshare replaces everything that a settable value shares with others by copies.
func unshare(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			to := reflect.New(v.Type().Elem())
			to.Elem().Set(v.Elem())
			unshare(to.Elem())
			v.Set(to)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() || f.Anonymous && f.Type.Kind() == reflect.Struct {
				unshare(v.Field(i))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			unshare(v.Index(i))
		}
	case reflect.Slice:
		if !v.IsNil() {
			to := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(to, v)
			for i := range to.Len() {
				unshare(to.Index(i))
			}
			v.Set(to)
		}
	case reflect.Map:
		if !v.IsNil() {
			to := reflect.MakeMapWithSize(v.Type(), v.Len())
			for k, x := range v.Seq2() {
				c := reflect.New(v.Type().Elem()).Elem()
				c.Set(x)
				unshare(c)
				to.SetMapIndex(k, c)
			}
			v.Set(to)
		}
	}
}
