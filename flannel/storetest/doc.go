// Package storetest tests what keeps leases: [Run] is what any [flannel.KV] has to do, under the [flannel.Registry] that
// nodes use. Stores in memory and in etcd pass the same test.
package storetest
