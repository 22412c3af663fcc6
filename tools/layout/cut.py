"""Small cuts that the plan needs before modules move. usage: cut.py ROOT"""
import ast,pathlib,sys
ROOT=pathlib.Path(sys.argv[1]); S=ROOT/'src/concordant'
def cut(path,names,new,doc,back=True,keep=()):
    p=S/path; t=p.read_text(); tree=ast.parse(t); lines=t.split('\n')
    take=[n for n in tree.body if getattr(n,'name',None) in names]
    while True:
        used={x.id for n in take for x in ast.walk(n) if isinstance(x,ast.Name)}
        others={x.id for n in tree.body if n not in take and not (isinstance(n,ast.Assign) and getattr(n.targets[0],'id','')=='__all__') for x in ast.walk(n) if isinstance(x,ast.Name) and isinstance(x.ctx,ast.Load)}
        gone=used-others
        public={x.value for n in tree.body if isinstance(n,ast.Assign) and getattr(n.targets[0],'id','')=='__all__' for x in ast.walk(n) if isinstance(x,ast.Constant)}
        gone-=public|set(keep)
        def defines(n): return {t.id for t in getattr(n,'targets',[]) if isinstance(t,ast.Name)} | ({n.target.id} if isinstance(n,ast.AnnAssign) else set()) | ({n.name} if hasattr(n,'name') else set())
        more=[n for n in tree.body if n not in take and defines(n)&gone]
        if not more: break
        take+=more
    for n in list(take):
        k=tree.body.index(n)+1
        if not hasattr(n,'name') and k<len(tree.body) and isinstance(tree.body[k],ast.Expr) and isinstance(tree.body[k].value,ast.Constant): take.append(tree.body[k])
    take=[n for n in tree.body if n in take]
    body=[]
    kill=set()
    for n in take:
        a=min([n.lineno]+[d.lineno for d in getattr(n,'decorator_list',[])])
        body.append('\n'.join(lines[a-1:n.end_lineno])); kill.update(range(a,n.end_lineno+1))
    rest='\n'.join(l for i,l in enumerate(lines,1) if i not in kill)
    mine={x.id for n in take for x in ast.walk(n) if isinstance(x,ast.Name)}
    kept=sorted({d for n in tree.body if n not in take for d in defines(n)}&mine)
    old='concordant.'+path[:-3].replace('/','.')
    imports='\n'.join(ast.get_source_segment(t,n) for n in tree.body if isinstance(n,(ast.Import,ast.ImportFrom)) and getattr(n,'module','')!='__future__')
    if kept: imports+=f"\nfrom {old} import {', '.join(kept)}"
    pub=[n for n in names if not n.startswith('_')]
    (S/new).write_text(f'"""{doc}"""\n\nfrom __future__ import annotations\n\n{imports}\n\n__all__ = {pub!r}\n\n\n'+'\n\n\n'.join(body)+'\n')
    mod='concordant.'+new[:-3].replace('/','.')
    if back: rest=rest.replace('\n__all__',f'\nfrom {mod} import {", ".join(pub)}\n\n__all__',1)
    for n in pub: 
        rest=rest.replace(f'"{n}", ','',1) if f'__all__ = ["{n}", ' in rest else rest.replace(f', "{n}"','',1)
    p.write_text(rest)
    import re
    for f in [*S.rglob('*.py'),*(ROOT/'tests').rglob('*.py'),*(ROOT/'benchmarks').rglob('*.py')]:
        if f in (S/path,S/new): continue
        x=f.read_text()
        def sub(m):
            got=[a.strip() for a in m[2].split(',')]
            moved=[a for a in got if a.split(' as ')[0] in pub]; left=[a for a in got if a not in moved]
            if not moved: return m[0]
            return '\n'.join(([f'{m[1]}from {old} import {", ".join(left)}'] if left else [])+[f'{m[1]}from {mod} import {", ".join(moved)}'])
        y=re.sub(r'(?m)^([ \t]*)from '+re.escape(old)+r' import ([\w, ]+)$',sub,x)
        if y!=x: f.write_text(y)
cut('log/tables.py',['as_columns','_as_arrow','_say_types'],'log/columns.py','Columns in memory of any make as Arrow arrays of one length.')
cut('log/layouts.py',['find_layout','notes_of'],'log/finding.py','Which layout a log has: the kind whose columns are there, by their usual names or as they were given.',back=False,keep=('plain',))
