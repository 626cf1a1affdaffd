{{- define "gvList" -}}
<!-- Written by `make generate` from the Go types. Do not edit. -->
{{ range . }}
{{- template "gvDetails" . }}
{{- end }}
{{- end -}}
