// Wrong: a release is passed on at once.
module TopModule (
  input  logic clk,
  input  logic reset,
  input  logic in,
  output logic out,
  output logic changed
);

  logic [1:0] run;

  always_ff @(posedge clk) begin
    changed <= 1'b0;
    if (reset) begin
      out <= 1'b0;
      run <= 2'd0;
    end else if (in == out) begin
      run <= 2'd0;
    end else if (run == 2'd3 || out) begin
      out <= in;
      changed <= 1'b1;
      run <= 2'd0;
    end else begin
      run <= run + 2'd1;
    end
  end

endmodule
