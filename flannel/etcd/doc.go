// Package etcd keeps the leases of package flannel in etcd, where flanneld keeps them and in the same form. It talks to etcd
// 3.4 and newer by the API v3.
//
//	PREFIX/config                        written by the operator
//	PREFIX/subnets/10.230.33.0-24        a key for each node, with an etcd lease of 24 h
//
// # How it differs from flanneld
//
// A lease is renewed as a transaction: if anybody has changed the key, the caller hears that it is lost. flanneld writes
// without a look, and so takes the subnet from whoever got it while it was suspended. Etcd leases that are no longer needed
// are revoked at once; flanneld leaves them to expire. The times to live of others' keys are never asked for, which
// is what flanneld's start with thousands of nodes consists of.
//
// # When etcd is away
//
// Every call has a deadline, and the connection is probed, so that a silent partition is noticed: Config.Timeout,
// Config.KeepAlive. A member without a leader ends the watch. [flannel.KV] says what its user does then: watch anew.
//
// A write whose answer is lost may have happened. The store remembers what it has tried to write, and takes a key
// for its own if it finds that there.
//
// # Other control planes
//
// A [Client] follows any keys of etcd for them, with the same settings and in the same way when etcd is away.
package etcd
