//go:build !linux

package main

import "net"

func peerOf(net.Conn) who { return who{} }
