// Package check states what a test wants in a line.
package check

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// OK ends the test if there is an error.
func OK(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// Must returns what a call returned, and ends the test if the call failed: Must(call())(t).
func Must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
		return v
	}
}

// Need ends the test with a message unless ok.
func Need(t testing.TB, ok bool, format string, args ...any) {
	if !ok {
		t.Helper()
		t.Fatalf(format, args...)
	}
}

// True fails the test with a message unless ok.
func True(t testing.TB, ok bool, format string, args ...any) {
	if !ok {
		t.Helper()
		t.Errorf(format, args...)
	}
}

// Equal fails the test unless got is want.
func Equal[T comparable](t testing.TB, what string, got, want T) {
	if got != want {
		t.Helper()
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// Slice fails the test unless got and want hold the same.
func Slice[T comparable](t testing.TB, what string, got, want []T) {
	if !slices.Equal(got, want) {
		t.Helper()
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// Err returns the error of a call.
func Err(_ any, err error) error { return err }

// ErrorIs fails the test unless err is of the kind of want.
func ErrorIs(t testing.TB, what string, err, want error) {
	if !errors.Is(err, want) {
		t.Helper()
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
}

// ErrorHas fails the test unless err starts with a text and has others in it.
func ErrorHas(t testing.TB, err error, start string, others ...string) {
	if err == nil || !strings.HasPrefix(err.Error(), start) || slices.ContainsFunc(others, func(s string) bool { return !strings.Contains(err.Error(), s) }) {
		t.Helper()
		t.Errorf("error %v, want %s ... %q", err, start, others)
	}
}
