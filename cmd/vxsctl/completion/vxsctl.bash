# Words for vxsctl, from vxsctl itself.
_vxsctl() {
	local line=${COMP_LINE:0:COMP_POINT} words=() list status i
	read -ra words <<<"$line"
	[[ $line == *[[:space:]] ]] && words+=("")
	list=$("${words[0]}" complete -- "${words[@]:1}" 2>/dev/null)
	status=$?
	COMPREPLY=()
	((status == 3)) && compopt -o default
	[[ $list ]] || return
	mapfile -t COMPREPLY <<<"$list"
	local last=${words[-1]}
	for i in "${!COMPREPLY[@]}"; do
		# Readline replaces what is behind the last colon.
		[[ $last == *:* && $COMP_WORDBREAKS == *:* ]] && COMPREPLY[i]=${COMPREPLY[i]#"${last%:*}:"}
		printf -v "COMPREPLY[$i]" %q "${COMPREPLY[i]}"
	done
}
complete -F _vxsctl vxsctl
