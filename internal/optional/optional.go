// Package optional finds what some values have beside what all of their kind have.
package optional

// Of returns what u has beside its methods or, of one that is wrapped around another and does not
// say otherwise, what that one has. What wraps has "Unwrap() any".
func Of[T any](u any) (x T, ok bool) {
	for {
		if x, ok = u.(T); ok {
			return x, true
		}
		w, wraps := u.(interface{ Unwrap() any })
		if !wraps {
			return x, false
		}
		u = w.Unwrap()
	}
}
