package store

import "fmt"

// An Error is one of RFC 7047, section 3.1.
type Error struct {
	Code    string `json:"error"`
	Details string `json:"details"`
}

// Error implements error.
func (e *Error) Error() string { return e.Code + ": " + e.Details }

const (
	syntaxError   = "syntax error"
	constraint    = "constraint violation"
	integrity     = "referential integrity violation"
	exhausted     = "resources exhausted"
	unknown       = "unknown column"
	timedOut      = "timed out"
	notOwner      = "not owner"
	aborted       = "aborted"
	domainError   = "domain error"
	rangeError    = "range error"
	ioError       = "I/O error"
	other         = "ovsdb error"
	duplicateUUID = "duplicate uuid"
	duplicateName = "duplicate uuid-name"
	noFunction    = "unknown function"
	noMutator     = "unknown mutator"
)

// fail returns an error. What a client has sent is quoted in part.
func fail(code, format string, args ...any) *Error {
	return &Error{Code: code, Details: fmt.Sprintf(format, args...)}
}

// Syntax returns a syntax error.
func Syntax(format string, args ...any) *Error { return fail(syntaxError, format, args...) }

// Exhausted returns the error of what goes beyond a limit.
func Exhausted(format string, args ...any) *Error { return fail(exhausted, format, args...) }
