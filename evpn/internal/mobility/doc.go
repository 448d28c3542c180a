// Package mobility decides where a host is that several VTEPs claim, and with which sequence number its own VTEP says so (RFC 7432,
// section 15). It knows one MAC at a time, and neither BGP nor a clock: times are arguments.
//
//	Claim.Beats    which of two claims counts
//	Host           the sequence of a MAC that is here or was, and how often it has moved
package mobility
