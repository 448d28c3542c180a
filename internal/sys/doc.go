// Package sys is the one place that speaks to the Linux kernel in its own terms:
// batches of messages (recvmmsg, sendmmsg), control messages, raw socket
// addresses and the socket error queue. Nothing here allocates on the packet
// path, and nothing here decides: the packages above know what the values mean.
//
//	underlay, port, node
//	     |
//	    sys      Mmsghdr, NextCmsg, PutSockaddr, ErrorQueue, PacketInterface, HostAddrs
//	     |
//	 x/sys/unix  numbers and struct layouts of each architecture
//
// Quirks of the kernel are written down where they are met, with the version
// they were seen on. On other systems the package is empty.
package sys
