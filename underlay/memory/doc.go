// Package memory is a network inside one process, and underlays on it: for tests, simulations and
// examples, in place of those of package underlay. It builds everywhere and needs no privileges.
//
//	VTEP -- Underlay --+
//	                   |
//	VTEP -- Underlay --+-- Network: links with loss, delay, jitter, reordering, MTUs and cuts
//	                   |
//	VTEP -- Underlay --+
//
// A [Network] delivers at once and in order unless a [Link] says otherwise. Chances come from a
// seed: equal seeds and equal traffic give equal results. Under testing/synctest delays take no real
// time.
//
// [Network.Listen] makes an underlay like that of [underlay.ListenUDP], [Network.ListenIP] one like
// that of [underlay.ListenIP]; both have the same methods, and the package comment of underlay says
// what they do. A Sender learns that a datagram is longer than the MTU, and nothing of what happens
// to it on the way except what PathMTU and Unreachable tell.
package memory
