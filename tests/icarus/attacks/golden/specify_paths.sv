// Path delays and timing checks that postpone the outputs or report violations.
module TopModule(input clk, input [7:0] d, output [7:0] q);
  assign q = d;
  specify
    (posedge clk => (q +: d)) = (1, 2);
    (d *> q) = 100000;
    $setup(d, posedge clk, 10);
  endspecify
endmodule
