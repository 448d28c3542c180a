// Package endp is how VTEPs of a network find each other, without clock, wire or I/O: clients register with one or two servers, and
// ask them who else has.
//
//	client                              server
//	Register, every 15 s ------------>  kept for 75 s
//	Probe, every 5 s     ------------>  every second while the server is young
//	                     <------------  Clients: what has changed since the version that the Probe names
//
// Each change has a version, and a server keeps the last one of each client: so an answer is a list of changes, the first one and
// all others, and as many answers as it takes follow each other. A server that restarts has another life and an empty list; what it had
// holds until it had time to hear from all. Of two servers both are asked, and whom either has is there: so they agree without
// a word between them. One that has not answered for 15 s does not count, unless no server does: then the last lists hold.
package endp
