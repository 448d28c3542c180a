package setting

import "reflect"

// Clone returns a copy of settings that shares nothing with them that can be changed: what is in
// pointers, slices, maps, arrays and exported fields is copied at any depth, that of embedded structs
// included. What is in other fields, in interfaces and in functions is shared.
func Clone[T any](x T) T {
	apart(reflect.ValueOf(&x).Elem())
	return x
}

// apart gives a value, which can be set, what it shares with another one of its own.
func apart(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			to := reflect.New(v.Type().Elem())
			to.Elem().Set(v.Elem())
			apart(to.Elem())
			v.Set(to)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() || f.Anonymous && f.Type.Kind() == reflect.Struct {
				apart(v.Field(i))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			apart(v.Index(i))
		}
	case reflect.Slice:
		if !v.IsNil() {
			to := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(to, v)
			for i := range to.Len() {
				apart(to.Index(i))
			}
			v.Set(to)
		}
	case reflect.Map:
		if !v.IsNil() {
			to := reflect.MakeMapWithSize(v.Type(), v.Len())
			for k, x := range v.Seq2() {
				c := reflect.New(v.Type().Elem()).Elem()
				c.Set(x)
				apart(c)
				to.SetMapIndex(k, c)
			}
			v.Set(to)
		}
	}
}
