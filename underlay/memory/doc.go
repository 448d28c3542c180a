// Package memory is an in-memory network with underlays, for tests, simulations and examples. It builds on every platform
// and needs no privileges.
//
//	VTEP -- Underlay --+
//	                   |
//	VTEP -- Underlay --+-- Network: links with loss, delay, jitter, reordering, MTUs and cuts
//	                   |
//	VTEP -- Underlay --+
//
// A [Network] delivers at once and in order unless a [Link] is configured otherwise. Random choices depend on a seed: equal
// seeds and equal traffic give equal results. Under testing/synctest delays take no real time.
//
// [Network.Listen] opens an underlay like [underlay.ListenUDP] does, and [Network.ListenIP] one like [underlay.ListenIP]. Their
// methods are documented in package underlay. A Sender learns that a datagram is longer than the MTU; what happens on the
// way is reported only to the PathMTU and Unreachable functions.
package memory
