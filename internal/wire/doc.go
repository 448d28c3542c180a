// Package wire has what the packages that look into packets share: checksums of the
// Internet protocols, and views over their headers. A view is a named slice or
// pointer over bytes whose length was checked once. It knows no other package of this
// module.
package wire
