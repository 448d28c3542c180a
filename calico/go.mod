module github.com/vxswitch/vxswitch/calico

go 1.26.0
