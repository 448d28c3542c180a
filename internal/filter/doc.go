// Package filter has the filters (classic BPF) of packet sockets. They keep frames for others from being copied and from
// waking goroutines, and divide those of a shared address between the socket of an underlay and the socket of a port:
//
//	frame --+--> For(a): the underlay       for the MAC, the address, and the UDP port or IP-in-IP
//	        +--> Not(a): the port           all others
//
// Each frame passes exactly one of the two, except one that ends before its IP addresses do, or before its ports: the
// port gets the former, nobody the latter.
package filter
