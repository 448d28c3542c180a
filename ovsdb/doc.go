// Package ovsdb has a controller program the switch by a database with the schema hardware_vtep (OVSDB, RFC 7047; the schema of
// Open vSwitch, version 1.7), as hardware switches do it: an ovsdb-server runs somewhere, and controller and switch are its clients. Or,
// with Config.Listen, the Switch has the server itself, with a file that ovsdb-server reads, and is its client by a pipe.
//
//	controller                 ovsdb-server                        Switch
//	Logical_Switch, bindings ------>                   ----> segments and members  (node.Provide)
//	Ucast_, Mcast_Macs_Remote ----->                   ----> MAC and Flood rows    (one Program for a transaction)
//	                                <----  Physical_Switch and its ports, Ucast_ and Mcast_Macs_Local
//
// The tables and what becomes of them:
//
//	Global                 written: switches, if ours is missing
//	Manager                with Config.Listen read: target, max_backoff; written: is_connected, status. Else nothing
//	Physical_Switch        written: name, tunnel_ips, ports, tunnels, switch_fault_status
//	Physical_Port          written: name, vlan_stats, port_fault_status; read: vlan_bindings, acl_bindings
//	Logical_Binding_Stats  written: packets and bytes, every 10 s
//	Logical_Switch         read: tunnel_key, replication_mode (service_node, the default: one copy of what is flooded)
//	Ucast_Macs_Local       written: batches of 20 ms, with addresses that the segment has snooped
//	Ucast_Macs_Remote      read: MAC, ipaddr, locator
//	Mcast_Macs_Local       written: unknown-dst; with Config.Multicast also MACs of the groups that hosts on ports listen to
//	Mcast_Macs_Remote      read: unknown-dst, and MACs of groups, whose frames go to no other VTEPs
//	Physical_Locator       read: dst_ip, tunnel_key, vxlan_over_ipv4 only; written: ours
//	Physical_Locator_Set   read: locators; written: ours
//	Tunnel                 written: local, remote, bfd_config_local, bfd_status; read: bfd_params, of which enable alone has an effect
//	Logical_Router         read: switch_binding, static_routes, acl_binding: a VRF, with a gateway in each Logical_Switch
//	Arp_Sources_Local      written: the MAC from which the node asks on behalf of routers
//	Arp_Sources_Remote     read: src_mac, locator, in Logical_Switches of a Logical_Router
//	ACL                    read: a policy without state, of members or of what is routed
//	ACL_entry              read: all but tcp_flags and masks with holes; a deny goes without them, and a permit has no effect
//
// A host that a new row of Ucast_Macs_Remote names has left the port where it was learned. If it sends there again, it is back.
//
// A multicast router is no listener to a group: a controller with rows for groups names the VTEPs of routers in each.
//
// The server is our own: that of libovsdb 0.8 has no locks, no assert, comment and commit, no file and no TLS, and a request without
// params ends the program. Tests compare ours with ovsdb-server: the answers to random transactions, what monitors hear, and files.
//
// While the database is away, what it said last holds. What contradicts itself or cannot be done is left out, as [Status] says.
package ovsdb
