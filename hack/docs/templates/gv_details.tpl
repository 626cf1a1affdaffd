{{- define "gvDetails" -}}
{{- $gv := . -}}
# API reference: {{ $gv.GroupVersionString }}

{{ trim $gv.Doc }}

Kinds:
{{ range $gv.SortedKinds }}
- {{ $gv.TypeForKind . | markdownRenderTypeLink }}
{{- end }}
{{ range $gv.SortedKinds }}
{{- template "type" ($gv.TypeForKind .) }}
{{- end }}
{{- range $gv.SortedTypes }}
{{- if not .GVK }}
{{- template "type" . }}
{{- end }}
{{- end }}
{{- end -}}
