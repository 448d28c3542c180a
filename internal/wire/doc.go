// Package wire has checksums of the Internet protocols and views of their headers. A view is a named slice of bytes whose
// length was checked once. The package imports no other package of this module.
package wire
