// Package frr runs the routing programs of FRR in hosts of package netns.
package frr
