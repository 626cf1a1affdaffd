{{- define "type" -}}
{{- if markdownShouldRenderType . }}
## {{ .Name }}

{{ template "prose" (trim .Doc) }}
{{- with .SortedReferences }}

Used in
{{- range $i, $type := . }}{{ if $i }},{{ end }} {{ markdownRenderTypeLink $type }}{{ end }}.
{{- end }}
{{- template "typeRules" . }}
{{- if and .EnumValues (first .EnumValues).Doc }}

| Value | Meaning |
| --- | --- |
{{- range .EnumValues }}
| `{{ .Name }}` | {{ template "cell" (regexReplaceAll "^[A-Z]\\w* " (trim .Doc) "") }} |
{{- end }}
{{- end }}
{{- if .Members }}

| Field | Description | Validation | Default |
| --- | --- | --- | --- |
{{- if .GVK }}
| `apiVersion` *string* | `{{ .GVK.Group }}/{{ .GVK.Version }}` | | |
| `kind` *string* | `{{ .GVK.Kind }}` | | |
{{- end }}
{{- range .Members }}
| `{{ .Name }}` *{{ markdownRenderType .Type }}* |{{ " " -}}
  {{ template "cell" (trim .Doc) }} |{{ " " -}}
  {{ template "fieldRules" . }} |{{ " " -}}
  {{ range index .Markers "kubebuilder:default" }}`{{ toJson .Value }}`{{ end }} |
{{- end }}
{{- end }}
{{ end }}
{{- end -}}

{{- /* Rules of a whole type, in the words of the API server. */ -}}
{{- define "typeRules" -}}
{{- $rules := list }}
{{- range $rule := .Validation }}
{{- $names := regexReplaceAll "^\\w+: \\[(.*)\\]$" $rule "${1}" | splitList " " | join "`, `" }}
{{- if hasPrefix "ExactlyOneOf: " $rule }}{{ $rules = append $rules (printf "exactly one must be set: `%s`" $names) }}
{{- else if hasPrefix "AtLeastOneOf: " $rule }}{{ $rules = append $rules (printf "at least one must be set: `%s`" $names) }}
{{- else if eq "MinProperties: 1" $rule }}{{ $rules = append $rules "at least one field must be set" }}
{{- else if and (hasPrefix "Enum: " $rule) (not (and $.EnumValues (first $.EnumValues).Doc)) }}{{ $rules = append $rules (printf "must be one of: `%s`" $names) }}
{{- end }}
{{- end }}
{{- range index .Markers "kubebuilder:validation:XValidation" }}{{ $rules = append $rules .Message }}{{ end }}
{{- if $rules }}

Rules:
{{ range $rules }}
- {{ template "prose" . }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Rules of a field: bounds, then what the API server says to a wrong value. Those of a struct are in its own section. */ -}}
{{- define "fieldRules" -}}
{{- $rules := list }}
{{- $required := false }}
{{- range $rule := .Validation }}
{{- if hasPrefix "Required:" $rule }}{{ $required = true }}
{{- else if regexMatch "^(items:)?(Max|Min)(Length|Items|imum): " $rule }}{{ $rules = append $rules ($rule | replace "items:" "each entry ") }}
{{- end }}
{{- end }}
{{- if not .Type.Members }}
{{- range index .Markers "kubebuilder:validation:XValidation" }}{{ $rules = append $rules .Message }}{{ end }}
{{- end }}
{{- range index .Markers "kubebuilder:validation:items:XValidation" }}{{ $rules = append $rules (printf "each entry %s" .Message) }}{{ end }}
{{- if $required }}**required**{{ if $rules }}<br>{{ end }}{{ end }}
{{- range $i, $rule := $rules }}{{ if $i }}<br>{{ end }}{{ template "cell" $rule }}{{ end }}
{{- end -}}

{{- define "prose" }}{{ . | replace "<" "&lt;" }}{{ end -}}
{{- define "cell" }}{{ . | replace "\n" " " | replace "<" "&lt;" | replace "|" "\\|" | replace "*" "\\*" }}{{ end -}}
